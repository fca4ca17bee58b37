// Evaluation of expressions.
#pragma once

#include "frontend/core/interpreter.h"
#include "frontend/values/truth.h"

namespace janus::frontend {

Value evaluate(Interpreter& interpreter, const syntax::Expression& expression);

/// Which way the test goes: computed now if it is known, else guarded and followed. `fact`: where
/// its outcomes were counted; the test expression's own fact is used if that one has none.
bool test(Interpreter& interpreter, const syntax::Expression& expression, int fact);

/// The truth of an expression where nothing but its truth is used (an operand of `and` may then be
/// of any class). `fact` as for test(); it is set to where the outcomes were counted.
Truth evaluate_truth(Interpreter& interpreter, const syntax::Expression& expression, int& fact);

/// Assigns to a target: a name, attribute, subscript, or a list of targets to unpack into.
void assign(Interpreter& interpreter, const syntax::Expression& target, const Value& value);

/// Implements truth_of() of core/operations.h.
Truth compute_truth(Interpreter& interpreter, const Value& value);

}  // namespace janus::frontend
