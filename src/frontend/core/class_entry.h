// Entries of classes: methods and other attributes that objects of a class share.
#pragma once

#include <initializer_list>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// What the class has under the name, assumed to stay; null: nothing.
PyObject* class_entry(Interpreter& interpreter, PyTypeObject* type, const char* name);

/// Assumes that a class of the program keeps what it has under these names, or has nothing under
/// them: where only its type slots were looked at. A class written in C does not change.
void assume_entries(Interpreter& interpreter, PyTypeObject* type,
                    std::initializer_list<const char*> names);

/// Whether the method is the one that the class written in C brings along.
bool is_of_class_in_c(PyTypeObject* type, PyObject* method, const char* name);

}  // namespace janus::frontend
