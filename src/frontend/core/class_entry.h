// Entries of classes: methods and other attributes that objects of a class share.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// What the class has under the name, assumed to stay; null: nothing.
PyObject* class_entry(Interpreter& interpreter, PyTypeObject* type, const char* name);

}  // namespace janus::frontend
