// Substitutes values by others, in place, in a pass's own copy of a graph.
#pragma once

#include <unordered_map>

#include "graph/graph.h"

namespace janus::passes {

using Renewed = std::unordered_map<const graph::Value*, graph::Value*>;

inline void renew(graph::Value*& value, const Renewed& now) {
  if (const auto found = now.find(value); found != now.end()) value = found->second;
}

void renew(graph::Block& block, const Renewed& now);

inline void renew(graph::Node& node, const Renewed& now) {
  for (graph::Value*& input : node.inputs) renew(input, now);
  for (const auto& block : node.blocks) renew(*block, now);
}

inline void renew(graph::Block& block, const Renewed& now) {
  for (graph::Node* node : block.nodes) renew(*node, now);
  for (graph::Value*& result : block.results) renew(result, now);
}

}  // namespace janus::passes
