// Tables from Python's callables to what they mean, made once by importing the names that the
// operators and the special callables state.
#include <unordered_map>

#include "frontend/builtins.h"
#include "frontend/callables.h"
#include "frontend/grad_mode.h"
#include "frontend/gradient_scaler.h"
#include "frontend/legacy_tensors.h"
#include "ops/list.h"
#include "python/origin.h"

namespace janus::frontend {

using python::Object;

namespace {

/// The attribute path below `root`; null (and no exception) if a part is missing.
PyObject* find_attribute(PyObject* root, std::string_view path) {
  Object object = Object::borrow(root);
  while (object && !path.empty()) {
    size_t dot = path.find('.');
    std::string name(path.substr(0, dot));
    object = Object::steal(PyObject_GetAttrString(object.get(), name.c_str()));
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  PyErr_Clear();
  return object.release();
}

/// The tables live as long as the process, like the callables of torch that they name. What the
/// program put under such a name before is not in them.
struct Registry {
  std::unordered_map<PyObject*, OperatorForm> forms;
  std::unordered_map<PyObject*, Handler> handlers;
  std::unordered_map<std::string, Handler> named_handlers;
  std::unordered_map<PyObject*, PyObject*> codes;  ///< of those that are written in Python
  bool has_numpy = false;
  std::unordered_map<std::string, OperatorForm> named;

  void note_code(PyObject* callable) {
    if (PyFunction_Check(callable))
      codes.try_emplace(callable, Py_NewRef(PyFunction_GET_CODE(callable)));
  }

  /// Whether it still does what its name says: nobody gave it another body.
  bool is_as_it_was(PyObject* callable) const {
    const auto noted = PyFunction_Check(callable) ? codes.find(callable) : codes.end();
    return noted == codes.end() || noted->second == PyFunction_GET_CODE(callable);
  }

  void add_form(const std::string& path, const graph::OpDef* op, bool in_place) {
    PyObject* callable = find_attribute(torch_module(), path);
    if (callable == nullptr || !python::is_made_by(callable, "torch")) return;
    note_code(callable);
    OperatorForm& form = forms[callable];
    for (const graph::OpDef* known : form.ops)
      if (known == op) return;
    form.ops.push_back(op);
    form.in_place = in_place;
  }

  void add_operator(const graph::OpDef& op) {
    std::string_view names = op.python;
    while (!names.empty()) {
      size_t end = names.find(' ');
      std::string path(names.substr(0, end));
      names = end == std::string_view::npos ? std::string_view() : names.substr(end + 1);
      if (path.empty()) continue;
      // A name with a trailing underscore stands for writing the result into the first operand.
      bool writes = path.ends_with('_') && !path.ends_with("__");
      add_form(path, &op, writes);
      named[path].ops.push_back(&op);
      named[path].in_place = writes;
      // Views have no in-place form that writes contents: `t_` and `detach_` change what a tensor
      // is.
      if (!path.ends_with('_') && !op.is(graph::Trait::view)) {
        add_form(path + "_", &op, true);
        OperatorForm& in_place = named[path + "_"];
        in_place.ops.push_back(&op);
        in_place.in_place = true;
      }
    }
  }

  void add_handlers(std::span<const SpecialCallable> table) {
    for (const SpecialCallable& special : table) {
      named_handlers.emplace(special.path, special.handler);
      const std::string_view path = special.path;
      PyObject* callable = imported(path);
      if (callable == nullptr || !python::is_made_by(callable, path.substr(0, path.find('.'))))
        continue;
      note_code(callable);
      handlers.emplace(callable, special.handler);
    }
  }

  Registry() {
    for (const graph::OpDef* op : ops::all()) add_operator(*op);
    add_handlers(builtin_callables());
    add_handlers(builtin_container_callables());
    add_handlers(tensor_callables());
    add_handlers(legacy_tensor_callables());
    add_handlers(gradient_scaler_callables());
    add_handlers(mask_callables());
    add_handlers(library_callables());
    add_handlers(context_variable_callables());
    add_handlers(python_callables());
    add_handlers(effect_callables());
    add_handlers(deque_callables());
    add_handlers(dict_callables());
    add_handlers(set_callables());
    add_handlers(standard_library_callables());
    add_handlers(custom_gradient_callables());
    add_handlers(autograd_callables());
    add_handlers(grad_mode_callables());
    add_handlers(autocast_callables());
    add_handlers(checkpoint_callables());
    add_handlers(requires_grad_callables());
    add_handlers(copy_callables());
    add_handlers(optimizer_callables());
    add_handlers(foreach_callables());
    add_handlers(module_callables());
    add_handlers(recurrent_callables());
  }
};

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

PyTypeObject* imported_type(const char* path) {
  PyObject* type = imported(path);
  TORCHJANUS_CHECK(type != nullptr && PyType_Check(type), "registry: no class ", path);
  return reinterpret_cast<PyTypeObject*>(type);
}

}  // namespace

PyObject* imported(std::string_view path) {
  // Modules below the first are looked up, not imported: trying to import a class is slow.
  size_t end = path.find('.');
  std::string prefix(path.substr(0, end));
  Object object = Object::steal(PyImport_ImportModule(prefix.c_str()));
  while (object && end != std::string_view::npos) {
    size_t next = path.find('.', end + 1);
    std::string name(path.substr(end + 1, next == std::string_view::npos ? next : next - end - 1));
    Object part = Object::steal(PyObject_GetAttrString(object.get(), name.c_str()));
    PyErr_Clear();
    if (!part) {
      Object key = Object::steal(
          PyUnicode_FromStringAndSize(path.data(), Py_ssize_t(std::min(next, path.size()))));
      part = Object::steal(PyImport_GetModule(key.get()));
    }
    object = std::move(part);
    end = next;
  }
  PyErr_Clear();
  return object.release();
}

Handler special_handler(PyObject* callable) {
  Registry& known = registry();
  if (!known.has_numpy && !numpy_callables().empty()) {
    known.add_handlers(numpy_callables());
    known.has_numpy = true;
  }
  const auto found = known.handlers.find(callable);
  return found == known.handlers.end() || !known.is_as_it_was(callable) ? nullptr : found->second;
}

Handler handler_named(std::string_view path) {
  const auto found = registry().named_handlers.find(std::string(path));
  TORCHJANUS_CHECK(found != registry().named_handlers.end(), "frontend: nothing handles ", path);
  return found->second;
}

const OperatorForm* operator_form(PyObject* callable) {
  const Registry& known = registry();
  const auto found = known.forms.find(callable);
  return found == known.forms.end() || !known.is_as_it_was(callable) ? nullptr : &found->second;
}

const OperatorForm* operator_form_named(std::string_view python_name) {
  auto found = registry().named.find(std::string(python_name));
  return found == registry().named.end() ? nullptr : &found->second;
}

// --- torch's classes and constants --------------------------------------------------------------

PyObject* torch_module() {
  static PyObject* const module = PyImport_ImportModule("torch");
  TORCHJANUS_CHECK(module != nullptr, "frontend: torch does not import");
  return module;
}

PyTypeObject* tensor_class() {
  static PyTypeObject* const type = imported_type("torch.Tensor");
  return type;
}
PyTypeObject* size_class() {
  static PyTypeObject* const type = imported_type("torch.Size");
  return type;
}
PyTypeObject* parameter_class() {
  static PyTypeObject* const type = imported_type("torch.nn.Parameter");
  return type;
}

bool is_torch_constant_class(PyTypeObject* type) {
  static PyTypeObject* const types[] = {
      imported_type("torch.dtype"),  imported_type("torch.device"),
      imported_type("torch.layout"), imported_type("torch.memory_format"),
      imported_type("torch.finfo"),  imported_type("torch.iinfo")};
  for (PyTypeObject* candidate : types)
    if (candidate == type) return true;
  return false;
}

bool is_torch_constant(PyObject* object) { return is_torch_constant_class(Py_TYPE(object)); }

namespace {

constexpr std::pair<const char*, graph::DType> kDTypes[] = {
    {"float16", graph::DType::f16},   {"bfloat16", graph::DType::bf16},
    {"float32", graph::DType::f32},   {"float64", graph::DType::f64},
    {"uint8", graph::DType::u8},      {"int8", graph::DType::i8},
    {"int16", graph::DType::i16},     {"int32", graph::DType::i32},
    {"int64", graph::DType::i64},     {"bool", graph::DType::b1},
    {"complex64", graph::DType::c64}, {"complex128", graph::DType::c128}};

const std::vector<std::pair<PyObject*, graph::DType>>& dtypes() {
  static const auto* const table = [] {
    auto* result = new std::vector<std::pair<PyObject*, graph::DType>>;
    for (const auto& [name, dtype] : kDTypes)
      result->emplace_back(find_attribute(torch_module(), name), dtype);
    return result;
  }();
  return *table;
}

}  // namespace

std::optional<graph::DType> dtype_of(PyObject* object) {
  for (const auto& [known, dtype] : dtypes())
    if (known == object) return dtype;
  return std::nullopt;
}

Object dtype_object(graph::DType dtype) {
  for (const auto& [known, name] : dtypes())
    if (name == dtype) return Object::borrow(known);
  return {};
}

}  // namespace janus::frontend
