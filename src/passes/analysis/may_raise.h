// Operators that raise for some contents of their operands, such as indices and divisors.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

/// Whether the program may raise at this node because of what its operands hold. Such a node stays
/// although nobody uses its results, and is not moved to where the program would not reach it.
bool may_raise(const graph::Node& node);

}  // namespace janus::passes
