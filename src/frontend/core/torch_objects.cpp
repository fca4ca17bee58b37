#include "frontend/core/torch_objects.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"

namespace janus::frontend {

using python::Object;

namespace {

Object import_path(std::string_view path) {
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
  return object;
}

}  // namespace

PyObject* imported(std::string_view path) {
  static auto& found = *new std::map<std::string, Object, std::less<>>();
  const auto known = found.find(path);
  if (known != found.end()) return known->second.get();
  Object object = import_path(path);
  return object ? found.emplace(path, std::move(object)).first->second.get() : nullptr;
}

namespace {

PyTypeObject* imported_type(const char* path) {
  PyObject* type = imported(path);
  TORCHJANUS_CHECK(type != nullptr && PyType_Check(type), "registry: no class ", path);
  return reinterpret_cast<PyTypeObject*>(type);
}

}  // namespace

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
      result->emplace_back(PyObject_GetAttrString(torch_module(), name), dtype);
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
