// Loop-invariant code motion: what every iteration of a loop, or every call of a function, computes
// alike moves in front of it. As this comes before differentiation, the gradients of all iterations
// are summed up first, and go back once through what was moved.
//
// Does:       moves pure nodes whose operands come from outside out of the blocks of `while`.
// Requires:   nothing.
// Guarantees: the same values; gradients whose terms are added up in another order.
// Must not:   move anything out of a loop that differentiates inside; move what draws random
//             numbers, has effects, or is as large as only an iteration knows. (What is moved out
//             of a loop without an iteration may fail: the run is given up then, which is always
//             right.)
#pragma once

#include <cstddef>

#include "graph/graph.h"

namespace janus::passes {

graph::Graph move_loop_invariants(graph::Graph graph);

/// Whether the value is defined in the block, or in one within it.
bool is_inside(const graph::Value& value, const graph::Block& block);

/// Whether there is a `gradient` node in the block, or in one within it.
bool differentiates(const graph::Block& block);

/// Moves in front of the node at `position`, a loop or a function, what its blocks compute of
/// values from outside alone. Gives how many nodes that are.
size_t move_in_front(graph::Block& block, size_t position);

}  // namespace janus::passes
