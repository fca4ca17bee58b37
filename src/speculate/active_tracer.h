// Whether a debugger, tracer or mode is active that would notice that a function ran as a graph.
#pragma once

#include "speculate/tensor_access.h"

namespace janus::speculate {

/// Its name for reports ("a trace function"); null if nothing is active.
const char* active_tracer(const Environment& environment);

}  // namespace janus::speculate
