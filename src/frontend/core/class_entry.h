// Entries of classes: methods and other attributes that objects of a class share.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// What the class has under the name, assumed to stay; null: nothing.
PyObject* class_entry(Interpreter& interpreter, PyTypeObject* type, const char* name);

/// Whether the method is the one that the class written in C brings along.
bool is_of_class_in_c(PyTypeObject* type, PyObject* method, const char* name);

}  // namespace janus::frontend
