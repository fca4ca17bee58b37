// Conditions: the truth of values, and tests that decide which way the program goes. A truth is
// known at generation, or a flag of the graph; a flag is either followed, with a guard, or both
// sides become a branch of the graph.
#pragma once

#include "frontend/core/interpreter.h"
#include "frontend/values/truth.h"

namespace janus::frontend {

/// Implements truth_of() of core/operations.h.
Truth compute_truth(Interpreter& interpreter, const Value& value);

/// The truth of an expression where nothing but its truth is used (an operand of `and` may then be
/// of any class). `fact`: where the outcomes were counted; it is set to the expression's own fact
/// if none were counted there.
Truth evaluate_truth(Interpreter& interpreter, const syntax::Expression& expression, int& fact);

/// Which way the test goes: as is known, or as was seen, with a guard. `fact` as above.
bool test(Interpreter& interpreter, const syntax::Expression& expression, int fact);

}  // namespace janus::frontend
