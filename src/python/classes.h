// What classes are derived from.
#pragma once

#include "python/object.h"

namespace janus::python {

/// Whether a class statement made it: also some classes written in C can be changed and collected.
inline bool is_made_by_statement(PyTypeObject* type) {
  static const destructor of_such =
      reinterpret_cast<PyTypeObject*>(import_attribute("abc", "ABC").release())->tp_dealloc;
  return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && type->tp_dealloc == of_such;
}

/// The class written in C that it is derived from, past those of the program's: object, dict, ...
inline PyTypeObject* class_in_c(PyTypeObject* type) {
  while (is_made_by_statement(type)) type = type->tp_base;
  return type;
}

}  // namespace janus::python
