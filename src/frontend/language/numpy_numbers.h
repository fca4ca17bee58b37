// Scalars of NumPy's that its functions make of numbers.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Where the value is what a function of NumPy gives for numbers: the same number as one of
/// Python's, for what takes both alike. Null: another value.
Value number_of_numpy(Interpreter& interpreter, const Value& value);

}  // namespace janus::frontend
