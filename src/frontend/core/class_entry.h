// Entries of classes: methods and other attributes that objects of a class share.
#pragma once

#include <initializer_list>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// What the class has under the name, assumed to stay; null: nothing.
PyObject* class_entry(Interpreter& interpreter, PyTypeObject* type, const char* name);

/// Assumes that what a class of the program has under these names, or that it has nothing, stays
/// so: where C's slots of the class have answered. What is written in C does not change.
void assume_entries(Interpreter& interpreter, PyTypeObject* type,
                    std::initializer_list<const char*> names);

/// Whether the method is the one that the class written in C brings along.
bool is_of_class_in_c(PyTypeObject* type, PyObject* method, const char* name);

}  // namespace janus::frontend
