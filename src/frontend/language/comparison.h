// Comparisons and identity by the kinds of the operands.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Implements compare() of core/operations.h.
Value compare_values(Interpreter& interpreter, syntax::CompareOperator op, const Value& left,
                     const Value& right);

/// Implements identical() of core/operations.h.
bool are_identical(Interpreter& interpreter, const Value& left, const Value& right);

}  // namespace janus::frontend
