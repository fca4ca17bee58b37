// Scalars of NumPy's: those that its functions make of numbers, and those that existed before.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Where the value is what a function of NumPy gives for numbers, or a scalar of floats that
/// existed before: the same number as one of Python's, for what takes both alike. Null: another
/// value.
Value number_of_numpy(Interpreter& interpreter, const Value& value);

/// `left op right` of a numpy.float64 and a float, or of two of the former; null: others.
Value numpy_binary(Interpreter& interpreter, syntax::Operator op, const Value& left,
                   const Value& right);

}  // namespace janus::frontend
