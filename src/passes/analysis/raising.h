// Which operators look at what tensors hold to decide whether they raise: at indices, at divisors.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

/// Whether the program may raise at this very node for what its operands hold: it runs also where
/// nobody uses what it gives, and only where the program comes to it.
bool may_raise(const graph::Node& node);

}  // namespace janus::passes
