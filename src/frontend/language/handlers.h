// `try`, `with`, `raise` and `assert`: what ends blocks of statements, and what is done at their
// ends. An exception that the program does not handle is left to eager execution.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

Completion execute_with(Interpreter& interpreter, const syntax::With& with);
Completion execute_try(Interpreter& interpreter, const syntax::Try& statement);
Completion execute_raise(Interpreter& interpreter, const syntax::Raise& statement);
Completion execute_assert(Interpreter& interpreter, const syntax::Assert& statement);

}  // namespace janus::frontend
