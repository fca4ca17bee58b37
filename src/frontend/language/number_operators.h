// Binary operators on numbers: of constants they are computed by CPython now; of numbers that only
// the run knows they become dimension arithmetic, scalar operators of the graph or calls of
// Python's functions.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// What CPython computes for two objects; null where it raises.
PyObject* apply_python(syntax::Operator op, PyObject* left, PyObject* right);

/// left op right of two numbers of which the graph computes at least one.
Value number_binary(Interpreter& interpreter, syntax::Operator op, const Value& left,
                    const Value& right);

}  // namespace janus::frontend
