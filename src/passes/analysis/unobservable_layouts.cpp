// See unobservable_layouts.h.
#include "passes/analysis/unobservable_layouts.h"

#include <span>

#include "graph/op.h"
#include "ops/index_space.h"

namespace janus::passes {

using graph::Node;
using graph::Value;

std::vector<bool> find_unobservable(const graph::Graph& graph) {
  std::vector<bool> unobservable(graph.value_count(), true);
  const auto show = [&](std::span<Value* const> values) {
    for (const Value* value : values) unobservable[value->id] = false;
  };
  show(graph.results());
  graph::for_each_node(graph.body(), [&](const Node& node) {
    const bool computes = (node.op->is(graph::Trait::elementwise) && node.inputs.size() > 1) ||
                          ops::is_plain_reduction(node);
    if (!computes) show(node.inputs);
    for (const auto& block : node.blocks) show(block->results);
  });
  return unobservable;
}

}  // namespace janus::passes
