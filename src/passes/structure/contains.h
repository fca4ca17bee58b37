// Which operators a graph has: a pass that is about one of them has nothing to do without.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

/// Whether a node of the operator is in the graph, or in a block nested in it.
inline bool contains(const graph::Graph& graph, const graph::OpDef& op) {
  bool found = false;
  graph::for_each_node(graph.body(), [&](const graph::Node& node) { found |= node.op == &op; });
  return found;
}

}  // namespace janus::passes
