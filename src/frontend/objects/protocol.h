// Checks of the results of special methods, as CPython makes them: a `__bool__` that gives an int,
// or a `__len__` that gives a negative number, raises.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// What `__bool__` of the object gives: a bool, or it raises TypeError.
Value called_bool(Interpreter& interpreter, const Value& method);

/// What `__len__` gives: an int that is not negative, or it raises TypeError or ValueError.
Value called_length(Interpreter& interpreter, const Value& method);

/// What `__str__`, `__repr__` or `__format__` gives: a str.
Value called_text(Interpreter& interpreter, const Value& method, const CallArguments& arguments);

/// What `__iter__` gives: an object that has a `__next__`, or it raises TypeError.
Value called_iterator(Interpreter& interpreter, const Value& method);

/// Whether the class of the object has the method, written in Python.
bool has_written(const Value& value, const char* method);

}  // namespace janus::frontend
