// See escaping.h.
#include "passes/escaping.h"

#include "graph/op.h"
#include "ops/list.h"

namespace janus::passes {

Escaping::Escaping(const graph::Graph& graph) : escapes_(graph.value_count()) {
  for (const graph::Value* result : graph.results()) add(result);
  graph::for_each_node(graph.body(), [&](const graph::Node& node) {
    if (node.op == &op::rebind || node.op == &op::opaque || node.op == &op::opaque_backward)
      for (const graph::Value* input : node.inputs) add(input);
  });
}

void Escaping::add(const graph::Value* value) {
  // Numbers have no identity that a graph could change.
  while (value->type.is_tensor() && !escapes_[value->id]) {
    escapes_[value->id] = true;
    const graph::Node* node = value->definition;
    if (node == nullptr) return;
    if (node->op->is(graph::Trait::control)) return add_block_results(*node, value->index);
    if (!node->op->is(graph::Trait::view)) return;
    value = node->inputs.front();
  }
}

void Escaping::add_block_results(const graph::Node& node, size_t index) {
  for (const auto& block : node.blocks)
    if (index < block->results.size()) add(block->results[index]);
}

}  // namespace janus::passes
