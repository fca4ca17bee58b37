// Execution of statements.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

Completion execute(Interpreter& interpreter, const syntax::Body& body);
Completion execute(Interpreter& interpreter, const syntax::Statement& statement);

/// Loops and branches (control.cpp).
Completion execute_if(Interpreter& interpreter, const syntax::If& statement);
Completion execute_for(Interpreter& interpreter, const syntax::For& loop);
Completion execute_while(Interpreter& interpreter, const syntax::While& loop);
Completion execute_match(Interpreter& interpreter, const syntax::Match& statement);  // match.cpp

/// What ends blocks and is done at their ends (handlers.cpp). An exception that nobody handles is
/// eager's to raise.
Completion execute_with(Interpreter& interpreter, const syntax::With& with);
Completion execute_try(Interpreter& interpreter, const syntax::Try& statement);
Completion execute_raise(Interpreter& interpreter, const syntax::Raise& statement);
Completion execute_assert(Interpreter& interpreter, const syntax::Assert& statement);

/// Leaves the function with the value. Out of a loop in the graph that is noted; what follows the
/// loop then does it.
Completion execute_return(Interpreter& interpreter, Value value);

}  // namespace janus::frontend
