#include "frontend/core/communication.h"

#include <algorithm>

#include "frontend/core/graph_writer.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/torch_objects.h"
#include "frontend/values/constants.h"
#include "ops/collectives.h"
#include "python/version.h"

namespace janus::frontend {

using python::Object;

namespace {

/// A class of C++: pybind11 derives all of them from one.
bool is_bound(PyTypeObject* type) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type->tp_mro); ++i) {
    auto* const each = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, i));
    if (std::string_view(each->tp_name).ends_with("pybind11_object")) return true;
  }
  return false;
}

Value answer_of(Interpreter& interpreter, const Known& object, const Object& method) {
  interpreter.assume_identity(object);
  return interpreter.constant(
      interpreter.must(PyObject_CallMethodNoArgs(object.object.get(), method.get())));
}

}  // namespace

bool is_communication(std::string_view operator_name) {
  static constexpr std::string_view kNamespaces[] = {
      "c10d", "c10d_functional", "_c10d_functional", "_c10d_functional_autograd",
      "fsdp", "symm_mem",        "_dtensor"};
  const std::string_view space = operator_name.substr(0, operator_name.find("::"));
  return std::ranges::find(kNamespaces, space) != std::end(kNamespaces);
}

CollectivesSince::CollectivesSince(GraphWriter& writer)
    : block_(&writer.builder().block()), nodes_(block_->nodes.size()) {}

bool CollectivesSince::any() const {
  return std::any_of(block_->nodes.begin() + static_cast<std::ptrdiff_t>(nodes_),
                     block_->nodes.end(),
                     [](const graph::Node* node) { return ops::begins_collective(*node); });
}

bool is_written_in_python(const Interpreter& interpreter, std::string_view operator_name) {
  if (operator_name.starts_with("aten::")) return false;
  static PyObject* const kernels = imported("torch.library._impls");
  if (kernels == nullptr || !PyAnySet_Check(kernels)) return false;
  const size_t space = operator_name.find("::");
  const std::string path =
      cat(operator_name.substr(0, space), "/",
          operator_name.substr(space + 2, operator_name.rfind('.') - space - 2));
  const Object all = interpreter.must(PySequence_List(kernels));
  for (const Object& each : python::elements(all.get())) {
    const std::string kernel = text_of(each.get());  // "space/name.overload/key"
    if (!kernel.starts_with(path) || kernel.ends_with("/Meta")) continue;
    if (kernel[path.size()] == '/' || kernel[path.size()] == '.') return true;
  }
  return false;
}

PyObject* process_groups() {
  static PyObject* const groups = imported("torch.distributed.group");
  return groups;
}

bool is_in_process_group(Interpreter& interpreter) {
  PyObject* const groups = process_groups();
  if (groups == nullptr) return false;
  const Object name = Object::steal(PyUnicode_InternFromString("WORLD"));
  const Object world = interpreter.must(PyObject_GetAttr(groups, name.get()));
  const speculate::Source* source = interpreter.sources().step(
      speculate::Source::Kind::attribute,
      interpreter.sources().root(speculate::Source::Kind::constant, Object::borrow(groups)), name);
  const bool is_member = !world.is(Py_None);
  if (is_member)
    interpreter.assume(speculate::Assumption::Kind::exact_type, source,
                       Object::borrow(reinterpret_cast<PyObject*>(Py_TYPE(world.get()))));
  else
    interpreter.assume(speculate::Assumption::Kind::identity, source, world);
  return is_member;
}

void expect_own_class(const Frames& frames, const PyTypeObject* type) {
  static PyObject* const work = imported("torchjanus.communication.Work");
  if (reinterpret_cast<const PyObject*>(type) == work)
    frames.refuse(ReasonCode::communication, "the class of a Work");
}

bool is_communication_class(PyTypeObject* type) {
  PyObject* const name = (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0
                             ? PyDict_GetItemString(python::class_dict(type), "__module__")
                             : nullptr;
  if (name == nullptr || !PyUnicode_Check(name)) return false;
  const std::string module = text_of(name);
  return (module == "torch._C._distributed_c10d" ||
          module == "torch.distributed.distributed_c10d") &&
         is_bound(type);
}

Value communication_attribute(Interpreter& interpreter, const Value& self, const Object& name) {
  const Known& object = *as<Known>(self);
  PyTypeObject* const type = Py_TYPE(object.object.get());
  const std::string text = text_of(name.get());
  if (text.starts_with("__") || _PyType_Lookup(type, name.get()) == nullptr) return nullptr;
  if (text == "rank" || text == "size")
    return std::make_shared<Native>(
        text, [self, name](Interpreter& inner, const CallArguments& arguments) {
          if (!arguments.positional.empty() || !arguments.keywords.empty())
            inner.refuse(ReasonCode::unsupported_argument, "an argument of a process group's size");
          return answer_of(inner, *as<Known>(self), name);
        });
  if (text == "group_name") {
    interpreter.assume_identity(object);
    return interpreter.constant(
        interpreter.must(PyObject_GetAttr(object.object.get(), name.get())));
  }
  // A class of the program's own communicates as its code says.
  static PyObject* const group = imported("torch.distributed.ProcessGroup");
  const Handler handler = reinterpret_cast<PyObject*>(type) == group
                              ? handler_named_or_null(cat("torch.distributed.ProcessGroup.", text))
                              : nullptr;
  if (handler == nullptr)
    interpreter.refuse(ReasonCode::communication,
                       cat(python::type_name(object.object.get()), ".", text));
  return std::make_shared<Native>(
      text, [self, handler](Interpreter& inner, const CallArguments& arguments) {
        CallArguments with_self = arguments;
        with_self.positional.insert(with_self.positional.begin(), self);
        return handler(inner, with_self);
      });
}

}  // namespace janus::frontend
