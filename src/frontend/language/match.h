// The `match` statement.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

Completion execute_match(Interpreter& interpreter, const syntax::Match& statement);

}  // namespace janus::frontend
