// Whether something watches the interpreter that would notice that a function ran as a graph.
#pragma once

#include "speculate/tensor_access.h"

namespace janus::speculate {

/// What is active, for people ("a trace function"); null if nothing is.
const char* active_watcher(const Environment& environment);

}  // namespace janus::speculate
