// See object.h.
#include "python/object.h"

#include "python/version.h"

namespace janus::python {

#if TORCHJANUS_SINCE_3_12
ErrorScope::ErrorScope() : exception_(PyErr_GetRaisedException()) {}
ErrorScope::~ErrorScope() { PyErr_SetRaisedException(exception_); }
#else
ErrorScope::ErrorScope() { PyErr_Fetch(&type_, &value_, &traceback_); }
ErrorScope::~ErrorScope() { PyErr_Restore(type_, value_, traceback_); }
#endif

namespace {

/// `result`; an AttributeError becomes null without an exception.
Object attribute_or_null(PyObject* result) {
  if (result != nullptr) return Object::steal(result);
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw ErrorSet();
  PyErr_Clear();
  return {};
}

/// The characters of a str, `otherwise` if it is none. Never raises.
std::string text_or(PyObject* str, const std::string& otherwise) {
  if (str == nullptr) {
    PyErr_Clear();
    return otherwise;
  }
  const Object owner = Object::steal(str);
  try {
    return to_string(str);
  } catch (const ErrorSet&) {
    PyErr_Clear();
    return otherwise;
  }
}

}  // namespace

std::string take_error_message() {
  const Object exception = Object::steal(RaisedException().release());
  if (!exception) return {};
  std::string text = text_or(PyObject_Str(exception.get()), "");
  return type_name(exception.get()) + (text.empty() ? "" : ": ") + text;
}

Object integer(int64_t value) { return check(PyLong_FromLongLong(value)); }

Object string(std::string_view text) {
  return check(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogatepass"));
}

PyObject* interned(const char* text) {
  // Never released: the callers keep the pointer in a static.
  return check(PyUnicode_InternFromString(text)).release();
}

Object tuple(const std::vector<Object>& elements) {
  Object result = check(PyTuple_New(static_cast<Py_ssize_t>(elements.size())));
  for (size_t i = 0; i < elements.size(); ++i)
    PyTuple_SET_ITEM(result.get(), static_cast<Py_ssize_t>(i), Object(elements[i]).release());
  return result;
}

Object list(const std::vector<Object>& elements) {
  Object result = check(PyList_New(static_cast<Py_ssize_t>(elements.size())));
  for (size_t i = 0; i < elements.size(); ++i)
    PyList_SET_ITEM(result.get(), static_cast<Py_ssize_t>(i), Object(elements[i]).release());
  return result;
}

Object attribute(PyObject* object, PyObject* name) { return check(PyObject_GetAttr(object, name)); }

Object attribute(PyObject* object, const char* name) {
  return check(PyObject_GetAttrString(object, name));
}

Object try_attribute(PyObject* object, PyObject* name) {
  return attribute_or_null(PyObject_GetAttr(object, name));
}

Object try_attribute(PyObject* object, const char* name) {
  return attribute_or_null(PyObject_GetAttrString(object, name));
}

void set_attribute(PyObject* object, const char* name, PyObject* value) {
  check_status(PyObject_SetAttrString(object, name, value));
}

Object dict_item(PyObject* dict, PyObject* key) {
  PyObject* found = PyDict_GetItemWithError(dict, key);
  if (found == nullptr && PyErr_Occurred() != nullptr) throw ErrorSet();
  return Object::borrow(found);
}

Object dict_item(PyObject* dict, const char* key) { return dict_item(dict, string(key).get()); }

std::vector<Object> elements(PyObject* iterable) {
  const Object items = check(PySequence_Fast(iterable, "not iterable"));
  std::vector<Object> result;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(items.get());
  result.reserve(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i)
    result.push_back(Object::borrow(PySequence_Fast_GET_ITEM(items.get(), i)));
  return result;
}

std::string to_string(PyObject* str) {
  Py_ssize_t size = 0;
  if (const char* text = PyUnicode_AsUTF8AndSize(str, &size); text != nullptr)
    return std::string(text, static_cast<size_t>(size));
  if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw ErrorSet();
  PyErr_Clear();
  const Object bytes = check(PyUnicode_AsEncodedString(str, "utf-8", "surrogatepass"));
  return std::string(PyBytes_AS_STRING(bytes.get()),
                     static_cast<size_t>(PyBytes_GET_SIZE(bytes.get())));
}

int64_t to_integer(PyObject* integer) {
  const long long result = PyLong_AsLongLong(integer);
  if (result == -1 && PyErr_Occurred() != nullptr) throw ErrorSet();
  return result;
}

bool equal(PyObject* a, PyObject* b) {
  const int result = PyObject_RichCompareBool(a, b, Py_EQ);
  check_status(result);
  return result == 1;
}

std::string repr(PyObject* object) {
  const ErrorScope scope;
  return text_or(PyObject_Repr(object), "<" + type_name(object) + ">");
}

std::string type_name(PyObject* object) {
  const std::string name = Py_TYPE(object)->tp_name;  // C classes: with their module
  return name.substr(name.rfind('.') + 1);
}

Object call(PyObject* callable, std::initializer_list<PyObject*> arguments) {
  return check(PyObject_Vectorcall(callable, std::data(arguments), arguments.size(), nullptr));
}

Object call_method(PyObject* object, const char* name, std::initializer_list<PyObject*> arguments) {
  return call(attribute(object, name).get(), arguments);
}

Object import_module(const char* name) { return check(PyImport_ImportModule(name)); }

Object import_attribute(const char* module, const char* name) {
  return attribute(import_module(module).get(), name);
}

bool is_weakly_referable(PyObject* object) {
  return PyType_SUPPORTS_WEAKREFS(Py_TYPE(object)) != 0;
}

Object weak_reference(PyObject* object) {
  if (!is_weakly_referable(object)) return {};
  return check(PyWeakref_NewRef(object, nullptr));
}

Object referent(PyObject* weak_reference) {
  return Object::borrow(borrowed_referent(weak_reference));
}

}  // namespace janus::python
