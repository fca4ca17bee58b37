// Algebraic simplification over several nodes. What one node alone decides is its operator's
// `fold`.
//
// Does:       drops what changes nothing (detach, copies, conversions and reshapes to what the
//             operand already is), joins chains of reshapes, of permutations and of conversions,
//             lays transposed products out as they are wanted, lets elementwise operators broadcast
//             by themselves, work in front of an `expand` and take numbers for tensors that are
//             filled with one.
// Requires:   no `gradient` nodes: `detach` still means something to them.
// Guarantees: every value is bit for bit the same, for NaN, infinity and -0.0 too.
// Must not:   round differently (no reassociation, no factoring out); touch a tensor that leaves
//             the graph (escaping.h): whether it is a copy or a view, and of what, can be seen. (A
//             detach of a temporary that nothing else shows may go.)
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph simplify(const graph::Graph& graph);

}  // namespace janus::passes
