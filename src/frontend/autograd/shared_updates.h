// Updates of parameters that other processes make as well, each of its own copy.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Whether the run, which is finished, takes gradients that it did not compute, in a process that
/// belongs to a group; that it does or does not is assumed where it matters.
bool is_shared_update(Interpreter& interpreter);

}  // namespace janus::frontend
