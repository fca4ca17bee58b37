#include "frontend/values/constants.h"

#include <cstring>

namespace janus::frontend {

using python::Object;

namespace {

bool is_plain_constant(PyObject* object) {
  return object == Py_None || object == Py_Ellipsis || object == Py_NotImplemented ||
         PyBool_Check(object) || PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
         PyUnicode_CheckExact(object) || PyBytes_CheckExact(object) || PyComplex_CheckExact(object);
}

bool is_constant_tuple(PyObject* object, int levels = 100) {
  if (!PyTuple_CheckExact(object) || levels == 0) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
    PyObject* element = PyTuple_GET_ITEM(object, i);
    if (!is_plain_constant(element) && !is_constant_tuple(element, levels - 1)) return false;
  }
  return true;
}

}  // namespace

std::string text_of(PyObject* object) {
  if (object == nullptr || !PyUnicode_Check(object)) return {};
  const char* text = PyUnicode_AsUTF8(object);
  if (text == nullptr) {
    PyErr_Clear();
    return {};
  }
  return text;
}

bool is_immutable_constant(PyObject* object) {
  return is_plain_constant(object) || is_constant_tuple(object);
}

bool same_constant(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b) || !is_immutable_constant(a)) return false;
  if (PyFloat_CheckExact(a)) {
    double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (PyTuple_CheckExact(a)) {
    if (PyTuple_GET_SIZE(a) != PyTuple_GET_SIZE(b)) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(a); ++i)
      if (!same_constant(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
    return true;
  }
  int equal = PyComplex_CheckExact(a) ? 0 : PyObject_RichCompareBool(a, b, Py_EQ);
  PyErr_Clear();
  return equal == 1;
}

}  // namespace janus::frontend
