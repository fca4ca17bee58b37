// Evaluation of expressions.
#pragma once

#include "frontend/interpreter.h"

namespace janus::frontend {

Value evaluate(Interpreter& interpreter, const syntax::Expression& expression);

/// Which way the test goes: computed now if it is known, else guarded and followed. `fact`: where
/// its outcomes were counted; the test expression's own fact is used if that one has none.
bool test(Interpreter& interpreter, const syntax::Expression& expression, int fact);

/// bool(value), as test() does.
bool truth(Interpreter& interpreter, const Value& value, int fact);

/// Assigns to a target: a name, attribute, subscript, or a list of targets to unpack into.
void assign(Interpreter& interpreter, const syntax::Expression& target, const Value& value);

}  // namespace janus::frontend
