// Functions that @torch.jit.script has compiled are inlined by their Python source, where
// TorchScript means the same by it.
#include "frontend/language/scripted_functions.h"

#include <algorithm>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "base/policy.h"
#include "frontend/core/class_of.h"
#include "frontend/core/torch_objects.h"
#include "frontend/language/functions.h"
#include "frontend/values/constants.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;

namespace {

bool is_any_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

std::string text_by(const Object& object) { return text_of(object.get()); }

// --- the source: TorchScript has bound names when it compiled ------------------------------------

/// A torch function of C++ by its own name, which means the same to both.
bool is_function_named(PyObject* object, std::string_view name) {
  return PyCFunction_Check(object) && text_by(python::attribute(object, "__name__")) == name;
}

bool is_of_torch(PyObject* module) {
  const Object name = python::try_attribute(module, "__name__");
  if (!name || !PyUnicode_Check(name.get())) return false;
  const std::string text = text_by(name);
  return text == "torch" || text.starts_with("torch.");
}

/// Whether a global that the instruction at `i` loads is torch's, by the attributes taken of it.
bool is_known_global(PyObject* function, const std::vector<Object>& instructions, size_t i) {
  Object name = python::attribute(instructions[i].get(), "argval");
  Object object = python::dict_item(PyFunction_GET_GLOBALS(function), name.get());
  if (!object) {
    const std::string text = text_by(name);
    return text == "range" || text == "len";
  }
  static PyObject* const dtype = imported("torch.dtype");
  const bool is_of_module = PyModule_Check(object.get());
  while (PyModule_Check(object.get())) {
    if (!is_of_torch(object.get()) || ++i == instructions.size()) return false;
    const Object operation = python::attribute(instructions[i].get(), "opname");
    if (!is_any_of(text_by(operation), {"LOAD_ATTR", "LOAD_METHOD"})) return false;
    name = python::attribute(instructions[i].get(), "argval");
    object = python::try_attribute(object.get(), name.get());
    if (!object) return false;
  }
  const bool is_dtype = reinterpret_cast<PyObject*>(Py_TYPE(object.get())) == dtype;
  return (is_of_module && is_dtype) || is_function_named(object.get(), text_by(name));
}

/// Whether the source means the same to TorchScript: it calls no functions of the user's (their
/// Python may have changed since), raises no errors (TorchScript makes its own), and calls no
/// functions that ask who runs them.
bool is_known_source(PyObject* function) {
  const auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  const Object free = python::attribute(PyFunction_GET_CODE(function), "co_freevars");
  if (PyTuple_GET_SIZE(free.get()) != 0 || code->co_kwonlyargcount != 0) return false;
  const std::vector<Object> instructions =
      python::elements(python::call(imported("dis.get_instructions"), {function}).get());
  for (size_t i = 0; i < instructions.size(); ++i) {
    const Object operation = python::attribute(instructions[i].get(), "opname");
    if (is_any_of(text_by(operation), {"RAISE_VARARGS", "MAKE_FUNCTION", "IMPORT_NAME"}))
      return false;
    if (text_by(operation) == "LOAD_GLOBAL" && !is_known_global(function, instructions, i))
      return false;
  }
  return true;
}

// --- what TorchScript has compiled ---------------------------------------------------------------

std::string kind_of(const Object& type_or_node) {
  return text_by(python::call_method(type_or_node.get(), "kind"));
}

/// Whether a value of TorchScript's is a tensor or a list of tensors.
bool holds_tensors(const Object& value) {
  Object type = python::call_method(value.get(), "type");
  if (kind_of(type) == "ListType") type = python::call_method(type.get(), "getElementType");
  return kind_of(type) == "TensorType";
}

/// Numbers and lists of them, each by its repr().
void add_numbers(PyObject* object, std::set<std::string>& numbers) {
  if (PyLong_Check(object) || PyFloat_Check(object))
    numbers.emplace(text_by(python::check(PyObject_Repr(object))));
  if (PyTuple_Check(object) || PyList_Check(object))
    for (const Object& element : python::elements(object)) add_numbers(element.get(), numbers);
}

/// Operators on tensors, and questions of sizes and comparisons. Of numbers alone some mean
/// another thing: 2 ** 3 is 8.0.
bool is_known_node(const Object& node) {
  const std::string kind = kind_of(node);
  if (is_any_of(kind, {"prim::Constant",
                       "prim::ListConstruct",
                       "prim::TupleConstruct",
                       "prim::ListUnpack",
                       "prim::TupleUnpack",
                       "prim::If",
                       "prim::Loop",
                       "prim::dtype",
                       "aten::size",
                       "aten::dim",
                       "aten::len",
                       "aten::__getitem__",
                       "aten::gt",
                       "aten::lt",
                       "aten::ge",
                       "aten::le",
                       "aten::eq",
                       "aten::ne",
                       "aten::__is__",
                       "aten::__isnot__",
                       "aten::__not__",
                       "aten::Bool"}))
    return true;
  const auto values = [&](const char* name) {
    return python::elements(python::call_method(node.get(), name).get());
  };
  const std::vector<Object> inputs = values("inputs"), outputs = values("outputs");
  return kind.starts_with("aten::") && std::ranges::any_of(inputs, holds_tensors) &&
         std::ranges::all_of(outputs, holds_tensors);
}

/// Collects the numbers of a graph or block whose nodes all are known.
bool are_known_nodes(PyObject* block, std::set<std::string>& numbers) {
  for (const Object& node : python::elements(python::call_method(block, "nodes").get())) {
    if (!is_known_node(node)) return false;
    if (kind_of(node) == "prim::Constant") {
      const Object output = python::call_method(node.get(), "output");
      add_numbers(python::call_method(output.get(), "toIValue").get(), numbers);
    }
    for (const Object& inner : python::elements(python::call_method(node.get(), "blocks").get()))
      if (!are_known_nodes(inner.get(), numbers)) return false;
  }
  return true;
}

/// A tensor or a tuple of tensors: TorchScript makes lists of other sequences, also of sizes.
bool gives_tensors(PyObject* graph) {
  const auto is_tensor = [](const Object& type) { return kind_of(type) == "TensorType"; };
  for (const Object& output : python::elements(python::call_method(graph, "outputs").get())) {
    const Object type = python::call_method(output.get(), "type");
    if (is_tensor(type)) continue;
    if (kind_of(type) != "TupleType" ||
        !std::ranges::all_of(python::elements(python::call_method(type.get(), "elements").get()),
                             is_tensor))
      return false;
  }
  return true;
}

/// Whether it has compiled the same: also each number that Python's compiler has computed.
bool compare_graph(PyObject* scripted, PyObject* code) {
  const Object graph = python::attribute(scripted, "graph");
  std::set<std::string> numbers, in_python;
  if (!gives_tensors(graph.get()) || !are_known_nodes(graph.get(), numbers)) return false;
  const Object constants = python::attribute(code, "co_consts");
  add_numbers(constants.get(), in_python);
  return std::ranges::includes(numbers, in_python);
}

/// The same, once for each of the last functions: all layers of a model call the same few, and
/// going through a graph by its Python methods takes longer than what is inlined.
bool is_known_graph(PyObject* scripted, PyObject* function) {
  struct Answer {
    Object scripted, code;  ///< weak references
    bool is_known;
  };
  static auto* const answers = new std::deque<Answer>();
  PyObject* const code = PyFunction_GET_CODE(function);
  for (const Answer& each : *answers)
    if (python::referent(each.scripted.get()).is(scripted) &&
        python::referent(each.code.get()).is(code))
      return each.is_known;
  const bool is_known = compare_graph(scripted, code);
  if (answers->size() == policy::kMostScriptedGraphs) answers->pop_front();
  answers->push_back({python::weak_reference(scripted), python::weak_reference(code), is_known});
  return is_known;
}

// --- arguments -----------------------------------------------------------------------------------

/// Defaults that TorchScript has kept as they are now.
bool are_defaults_the_same(PyObject* scripted, PyObject* function) {
  std::vector<Object> kept;
  const Object schema = python::attribute(scripted, "schema");
  for (const Object& argument :
       python::elements(python::attribute(schema.get(), "arguments").get()))
    if (PyObject_IsTrue(python::call_method(argument.get(), "has_default_value").get()) == 1)
      kept.push_back(python::attribute(argument.get(), "default_value"));
  const Object defaults = python::attribute(function, "__defaults__");
  std::vector<Object> now;
  if (defaults.get() != Py_None) now = python::elements(defaults.get());
  return std::ranges::equal(kept, now, [](const Object& a, const Object& b) {
    if (a.get() == b.get()) return true;
    if (Py_TYPE(a.get()) != Py_TYPE(b.get())) return false;
    const bool is_plain =
        PyLong_Check(a.get()) || PyFloat_Check(a.get()) || PyUnicode_Check(a.get());
    return is_plain && PyObject_RichCompareBool(a.get(), b.get(), Py_EQ) == 1;
  });
}

/// What TorchScript takes under an annotation as it is: it converts, or refuses, all else. Without
/// one a parameter is a tensor.
bool is_taken_as_it_is(const Value& value, PyObject* annotation) {
  static PyObject* const tensor = imported("torch.Tensor");
  if (annotation == nullptr || annotation == tensor) return as<Tensor>(value) != nullptr;
  for (PyTypeObject* type : {&PyFloat_Type, &PyLong_Type, &PyBool_Type, &PyUnicode_Type})
    if (annotation == reinterpret_cast<PyObject*>(type)) return class_of(value) == type;
  return false;
}

bool are_taken_as_they_are(PyObject* function, const CallArguments& arguments) {
  const Object annotations = python::attribute(function, "__annotations__");
  const auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(function));
  const Object names = python::attribute(PyFunction_GET_CODE(function), "co_varnames");
  const auto annotation_of = [&](PyObject* name) {
    return PyDict_GetItemWithError(annotations.get(), name);
  };
  if (arguments.positional.size() > static_cast<size_t>(code->co_argcount)) return false;
  for (size_t i = 0; i < arguments.positional.size(); ++i)
    if (!is_taken_as_it_is(arguments.positional[i], annotation_of(PyTuple_GET_ITEM(
                                                        names.get(), static_cast<Py_ssize_t>(i)))))
      return false;
  for (const auto& [name, value] : arguments.keywords)
    if (!is_taken_as_it_is(value, annotation_of(python::string(name).get()))) return false;
  return true;
}

/// TorchScript's own gradients of random operators draw otherwise.
bool draws(const graph::Block& block, size_t from) {
  for (size_t i = from; i < block.nodes.size(); ++i) {
    const graph::Node& node = *block.nodes[i];
    if (node.op->is(graph::Trait::random) || node.attributes.get_or<bool>("_draws", false))
      return true;
    for (const auto& inner : node.blocks)
      if (draws(*inner, 0)) return true;
  }
  return false;
}

}  // namespace

Value call_scripted(Interpreter& interpreter, const Known& known, const CallArguments& arguments) {
  static PyObject* const type = imported("torch.jit.ScriptFunction");
  if (reinterpret_cast<PyObject*>(Py_TYPE(known.object.get())) != type) return nullptr;
  const Object function = python::try_attribute(known.object.get(), "_torchdynamo_inline");
  if (!function || !PyFunction_Check(function.get()) || !is_known_source(function.get()) ||
      !is_known_graph(known.object.get(), function.get()) ||
      !are_defaults_the_same(known.object.get(), function.get()) ||
      !are_taken_as_they_are(function.get(), arguments))
    interpreter.refuse(ReasonCode::unknown_callable,
                       "a scripted function that may differ from its Python source");
  interpreter.assume_identity(known);
  const graph::Block& block = interpreter.builder().block();
  const size_t before = block.nodes.size();
  const Value result =
      inline_function(interpreter, function.get(),
                      interpreter.sources().root(Source::Kind::constant, function), arguments);
  if (draws(block, before))
    interpreter.refuse(ReasonCode::unknown_callable, "a scripted function that draws");
  if (as<Tensor>(result) == nullptr && class_of(result) != &PyTuple_Type)
    interpreter.refuse(ReasonCode::unknown_callable,
                       "a scripted function that gives a tuple of a class");
  return result;
}

}  // namespace janus::frontend
