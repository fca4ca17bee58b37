// Common subexpression elimination: equal values are computed once.
//
// Does:       replaces a pure node, or a read of the heap, by an earlier one with the same
//             operator, operands, attributes and result types that is visible where it stands.
// Requires:   nothing.
// Guarantees: the values are bit for bit the same.
// Must not:   merge random nodes, nodes with effects or nodes with blocks; nor make two tensors
//             that leave the graph the same one (escaping.h).
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph merge_common_subexpressions(const graph::Graph& graph);

}  // namespace janus::passes
