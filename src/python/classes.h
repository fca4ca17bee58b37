// What classes are derived from.
#pragma once

#include <Python.h>

namespace janus::python {

/// The class written in C that it is derived from, past those of the program's: object, dict, ...
inline PyTypeObject* class_in_c(PyTypeObject* type) {
  while ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0) type = type->tp_base;
  return type;
}

}  // namespace janus::python
