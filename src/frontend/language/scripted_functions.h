// Functions that @torch.jit.script has compiled.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Calls such a function by its Python source; null if it is none, or if TorchScript may compute
/// something else than that source.
Value call_scripted(Interpreter& interpreter, const Known& known, const CallArguments& arguments);

}  // namespace janus::frontend
