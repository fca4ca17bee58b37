// The driver: interprets the function or the statements of a call, from the arguments to what is
// given back.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The graph of the interpreter's call. Throws Refusal, CannotMerge or Generalise.
speculate::Generated run_entry(Interpreter& interpreter);

}  // namespace janus::frontend
