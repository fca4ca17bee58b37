// `if`, `for` and `while`, and `return`, which may leave loops. Loops over known things are
// unrolled; tests that the graph computes are followed and guarded, or become branches and loops of
// the graph.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

Completion execute_if(Interpreter& interpreter, const syntax::If& statement);
Completion execute_for(Interpreter& interpreter, const syntax::For& loop);
Completion execute_while(Interpreter& interpreter, const syntax::While& loop);

/// Leaves the function with the value. Inside a loop of the graph the `return` is noted; what
/// follows the loop then leaves the function.
Completion execute_return(Interpreter& interpreter, Value value);

}  // namespace janus::frontend
