// Functions that calls of the program define.
#pragma once

#include "python/object.h"

namespace janus::frontend {

/// Whether it is a function that was defined in a call, and refers to that call's variables:
/// another call may make another one of the same code.
inline bool is_local_function(PyObject* object) {
  return PyFunction_Check(object) && PyFunction_GetClosure(object) != nullptr;
}

}  // namespace janus::frontend
