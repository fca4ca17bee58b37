// Operator fusion: elementwise nodes, reductions and gathers become `fused` nodes, each of which is
// compiled to one kernel.
//
// Does:       gathers what can be computed in one loop (grouping.h) and replaces it by a `fused`
//             node. Its block has the operators, and the constants that they use; its parameters
//             are the operands from outside. Only results that are used outside are stored; what
//             is cheaper computed anew than read is so in each kernel that needs it.
// Requires:   no composite operators, no `gradient` nodes.
// Guarantees: each `fused` node has one iteration space (ops/index_space.h). Every operator that
//             only kernels can compute (an elementwise one without an ATen overload) is in one.
// Must not:   reorder nodes with effects; make a cycle.
#pragma once

#include "graph/graph.h"
#include "passes/fusion/can_fuse.h"

namespace janus::passes {

graph::Graph fuse(const graph::Graph& graph, const CanFuse& can_fuse);

/// `fuse` for the operators alone that only kernels can compute.
graph::Graph wrap(const graph::Graph& graph, const CanFuse& can_fuse);

/// What `fuse` asks when nobody says what kernels can do: elementwise with a scalar program, and
/// dtypes that kernels compute with.
bool can_fuse_by_traits(const graph::Node& node);

}  // namespace janus::passes
