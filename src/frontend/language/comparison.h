// Comparisons and identity by the kinds of the operands.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Implements compare() of core/operations.h.
Value compare_values(Interpreter& interpreter, syntax::CompareOperator op, const Value& left,
                     const Value& right);

/// `==` or `!=`, as the program writes it, of numbers that follow from a remainder: a value of the
/// graph, since a remainder is another one in most calls. Null for other operands.
Value compare_remainders(Interpreter& interpreter, syntax::CompareOperator op, const Value& left,
                         const Value& right);

/// Implements identical() of core/operations.h.
bool are_identical(Interpreter& interpreter, const Value& left, const Value& right);

}  // namespace janus::frontend
