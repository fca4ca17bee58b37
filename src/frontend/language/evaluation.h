// The recursive core of this room: what an expression gives, and what a statement does.
// Each kind of expression and statement is made of others; the units that implement one kind
// evaluate its parts by these functions. Expressions are in expressions.cpp, statements in
// statements.cpp.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The value of the expression. Its operands are evaluated from left to right.
Value evaluate(Interpreter& interpreter, const syntax::Expression& expression);

/// Runs the statement, and says how it ends.
Completion execute(Interpreter& interpreter, const syntax::Statement& statement);

/// Runs the statements one after the other until one of them leaves the block.
Completion execute(Interpreter& interpreter, const syntax::Body& body);

}  // namespace janus::frontend
