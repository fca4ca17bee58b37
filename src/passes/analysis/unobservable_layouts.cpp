// See unobservable_layouts.h.
#include "passes/analysis/unobservable_layouts.h"

#include <span>

#include "graph/op.h"
#include "ops/index_space.h"

namespace janus::passes {

using graph::Node;
using graph::Value;

std::vector<bool> find_hidden(const graph::Graph& graph) {
  std::vector<bool> hidden(graph.value_count(), true);
  const auto show = [&](std::span<Value* const> values) {
    for (const Value* value : values) hidden[value->id] = false;
  };
  show(graph.results());
  graph::for_each_node(graph.body(), [&](const Node& node) {
    const bool computes = (node.op->is(graph::Trait::elementwise) && node.inputs.size() > 1) ||
                          ops::is_plain_reduction(node);
    if (!computes) show(node.inputs);
    for (const auto& block : node.blocks) show(block->results);
  });
  return hidden;
}

}  // namespace janus::passes
