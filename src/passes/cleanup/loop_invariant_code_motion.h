// What every round of a loop, or every call of a function, computes alike.
#pragma once

#include <cstddef>

#include "graph/graph.h"

namespace janus::passes {

/// Whether the value is defined in the block, or in one within it.
bool is_inside(const graph::Value& value, const graph::Block& block);

/// Whether there is a `gradient` node in the block, or in one within it.
bool differentiates(const graph::Block& block);

/// Moves in front of the node at `position`, a loop or a function, what its blocks compute of
/// values from outside alone. Gives how many nodes that are.
size_t move_in_front(graph::Block& block, size_t position);

}  // namespace janus::passes
