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

/// The nearest base class written in C: object, dict, ...
inline PyTypeObject* class_in_c(PyTypeObject* type) {
  while (is_made_by_statement(type)) type = type->tp_base;
  return type;
}

}  // namespace janus::python
