// Functions that @torch.jit.script has compiled.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Calls such a function by its Python source; null: it is none, or TorchScript would not mean the
/// same by it.
Value call_scripted(Interpreter& interpreter, const Known& known, const CallArguments& arguments);

}  // namespace janus::frontend
