// Python's binary, in-place and unary operators by the kinds of their operands: constants, numbers,
// tensors, texts, containers, and objects whose class defines them.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Implements binary() of core/operations.h.
Value compute_binary(Interpreter& interpreter, syntax::Operator op, const Value& left,
                     const Value& right);

/// left op= right: what the target is bound to.
Value binary_in_place(Interpreter& interpreter, syntax::Operator op, const Value& left,
                      const Value& right);

/// op operand
Value unary(Interpreter& interpreter, syntax::UnaryOperator op, const Value& operand);

}  // namespace janus::frontend
