// Answers by the object's exact class, or by what the class inherits unchanged.
#include "frontend/objects/container_classes.h"

#include "frontend/core/torch_objects.h"

namespace janus::frontend {

using python::Object;

namespace {

PyTypeObject* class_at(const char* path) { return reinterpret_cast<PyTypeObject*>(imported(path)); }

/// Methods of tuples that the interpreter takes over: a class with its own is no named tuple to it.
constexpr const char* kTakenOver[] = {
    "__iter__", "__len__",      "__getitem__",      "__contains__", "__eq__",   "__ne__",
    "__lt__",   "__le__",       "__gt__",           "__ge__",       "__add__",  "__radd__",
    "__iadd__", "__mul__",      "__rmul__",         "__imul__",     "__hash__", "__init__",
    "__bool__", "__reversed__", "__getattribute__", "__getattr__",  "count",    "index"};

/// Whether the class reads the field as it is, and not by a property of its own.
bool is_plain_field(PyTypeObject* type, PyObject* field) {
  static PyTypeObject* const getter = class_at("collections._tuplegetter");
  PyObject* const found = PyUnicode_Check(field) ? _PyType_Lookup(type, field) : nullptr;
  return found != nullptr && Py_IS_TYPE(found, getter);
}

}  // namespace

PyObject* tuple_fields(PyTypeObject* type) {
  if (type == &PyTuple_Type || PyType_IsSubtype(type, &PyTuple_Type) == 0) return nullptr;
  PyObject* const fields = _PyType_Lookup(type, python::interned("_fields"));
  if (fields == nullptr || !PyTuple_Check(fields)) return nullptr;
  for (const char* method : kTakenOver) {
    PyObject* const name = python::interned(method);
    const bool is_inherited = _PyType_Lookup(type, name) == _PyType_Lookup(&PyTuple_Type, name);
    if (!is_inherited && !is_plain_field(type, name)) return nullptr;  // a field may be `index`
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(fields); ++i)
    if (!is_plain_field(type, PyTuple_GET_ITEM(fields, i))) return nullptr;
  return fields;
}

bool is_tuple_like(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  return PyTuple_CheckExact(object) || type == size_class() || tuple_fields(type) != nullptr;
}

bool is_plain_tuple(const Sequence& sequence) {
  return !sequence.is_list && !sequence.type && sequence.viewed == nullptr;
}

bool is_list_class(PyTypeObject* type) {
  return type != nullptr && PyType_IsSubtype(type, &PyList_Type) != 0;
}

PyTypeObject* deque_type() {
  static PyObject* const type = imported("collections.deque");
  return reinterpret_cast<PyTypeObject*>(type);
}

bool is_deque(const Sequence& sequence) {
  return sequence.type.is(reinterpret_cast<PyObject*>(deque_type()));
}

PyTypeObject* ordered_dict_type() {
  static PyTypeObject* const type = class_at("collections.OrderedDict");
  return type;
}

PyTypeObject* default_dict_type() {
  static PyTypeObject* const type = class_at("collections.defaultdict");
  return type;
}

PyTypeObject* counter_type() {
  static PyTypeObject* const type = class_at("collections.Counter");
  return type;
}

bool is_proxy(const Dictionary& dictionary) {
  return dictionary.type.is(reinterpret_cast<PyObject*>(&PyDictProxy_Type));
}

bool is_counter(PyTypeObject* type) { return type == counter_type(); }

bool is_plain_dict(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  return type == &PyDict_Type || type == ordered_dict_type() || type == default_dict_type() ||
         type == counter_type();
}

std::optional<RealDict> real_dict(const Value& value) {
  if (const auto* known = as<Known>(value); known != nullptr && is_plain_dict(known->object.get()))
    return RealDict{known->object.get(), known->source};
  if (const auto* dictionary = as<Dictionary>(value);
      dictionary != nullptr && dictionary->source != nullptr)
    return RealDict{dictionary->object.get(), dictionary->source};
  return std::nullopt;
}

void expect_count(const Frames& frames, const CallArguments& arguments, size_t least, size_t most) {
  if (arguments.positional.size() < least || arguments.positional.size() > most ||
      !arguments.keywords.empty())
    frames.refuse(ReasonCode::unsupported_argument, "arguments of a container's method");
}

}  // namespace janus::frontend
