// How a class was made, and what it derives from.
#pragma once

#include "python/object.h"

namespace janus::python {

/// Whether a class statement made the class. The flags alone do not tell: some classes written in C
/// can be changed and collected, too.
inline bool is_made_by_statement(PyTypeObject* type) {
  static const destructor of_such =
      reinterpret_cast<PyTypeObject*>(import_attribute("abc", "ABC").release())->tp_dealloc;
  return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && type->tp_dealloc == of_such;
}

/// `typing.Generic` is written in C since Python 3.12, and makes what object makes.
inline bool is_generic(const PyTypeObject* type) {
  static PyObject* const generic = import_attribute("typing", "Generic").release();
  return reinterpret_cast<const PyObject*>(type) == generic;
}

/// The nearest base class written in C that its objects have something of: object, dict, ...
inline PyTypeObject* class_in_c(PyTypeObject* type) {
  while (is_made_by_statement(type) || is_generic(type)) type = type->tp_base;
  return type;
}

/// Whether objects of the class can be asked for a next one. A class statement without `__next__`
/// puts a function into the slot that says no.
inline bool is_iterator_class(const PyTypeObject* type) {
  static const iternextfunc refuses =
      reinterpret_cast<PyTypeObject*>(import_attribute("abc", "ABC").release())->tp_iternext;
  return type->tp_iternext != nullptr && type->tp_iternext != refuses;
}

}  // namespace janus::python
