// Evaluation of expressions.
#pragma once

#include "frontend/branches.h"
#include "frontend/interpreter.h"

namespace janus::frontend {

Value evaluate(Interpreter& interpreter, const syntax::Expression& expression);

/// Which way the test goes: computed now if it is known, else guarded and followed. `fact`: where
/// its outcomes were counted; the test expression's own fact is used if that one has none.
bool test(Interpreter& interpreter, const syntax::Expression& expression, int fact);

/// The truth of the value: known, or a flag of the graph.
Truth truth_of(Interpreter& interpreter, const Value& value);
Truth negated(Interpreter& interpreter, Truth truth);
/// The outcome as a bool.
Value flag_value(Interpreter& interpreter, const Truth& truth);
/// Whether one of two bools is true, or both are; whether both are.
Value either_flag(Interpreter& interpreter, const Value& a, const Value& b);
Value both_flags(Interpreter& interpreter, const Value& a, const Value& b);
/// The truth of an expression where nothing but its truth is used (an operand of `and` may then be
/// of any class). `fact` as for test(); it is set to where the outcomes were counted.
Truth evaluate_truth(Interpreter& interpreter, const syntax::Expression& expression, int& fact);

/// bool(value), as test() does.
bool truth(Interpreter& interpreter, const Value& value, int fact);

/// Assigns to a target: a name, attribute, subscript, or a list of targets to unpack into.
void assign(Interpreter& interpreter, const syntax::Expression& target, const Value& value);

}  // namespace janus::frontend
