// Replaces one value of a graph by another in place, where rebuilding the graph would be too much.
#pragma once

#include <algorithm>

#include "graph/graph.h"

namespace janus::passes {

/// In the block's nodes and in blocks within them, but not in the node that makes `by` of `value`,
/// nor in what the block itself gives.
inline void replace_uses(graph::Block& block, graph::Value* value, graph::Value* by) {
  for (graph::Node* node : block.nodes) {
    if (node == by->definition) continue;
    std::ranges::replace(node->inputs, value, by);
    for (const auto& nested : node->blocks) {
      replace_uses(*nested, value, by);
      std::ranges::replace(nested->results, value, by);
    }
  }
}

}  // namespace janus::passes
