// contextvars.ContextVar, read in C.
#pragma once

#include "python/object.h"

namespace janus::python {

/// The variable's value in this context, or its default. Null, with no exception set, if it has
/// neither.
inline Object held_by_context_variable(PyObject* variable) {
  PyObject* held = nullptr;
  if (PyContextVar_Get(variable, nullptr, &held) < 0) PyErr_Clear();
  return Object::steal(held);
}

}  // namespace janus::python
