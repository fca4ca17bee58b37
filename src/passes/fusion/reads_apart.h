// Gives a tensor several names where kernels read it in several ways: at the points of the loop,
// and elsewhere.
#pragma once

#include "graph/graph.h"
#include "passes/fusion/can_fuse.h"

namespace janus::passes {

/// A copy of the graph in which each kernel's operand is read in one way, as kernels ask for:
/// `flip(x) + x` turns another name of x. Those names are nodes for which is_other_name() holds.
graph::Graph with_reads_apart(const graph::Graph& graph, const CanFuse& can_fuse);

/// Whether the node only gives its operand another name, which nobody but fuse() needs.
bool is_other_name(const graph::Node& node);

}  // namespace janus::passes
