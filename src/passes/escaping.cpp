// See escaping.h.
#include "passes/escaping.h"

#include "graph/op.h"
#include "ops/list.h"

namespace janus::passes {

using graph::Node;
using graph::Trait;
using graph::Value;

Escaping::Escaping(const graph::Graph& graph) : ways_(graph.value_count()) {
  for (const Value* result : graph.results()) add(result);
  graph::for_each_node(graph.body(), [&](const Node& node) {
    if (node.op == &op::rebind || node.op == &op::opaque || node.op == &op::opaque_backward)
      for (const Value* input : node.inputs) add(input);
  });
}

void Escaping::add(const Value* value) {
  // Numbers have no identity that a graph could change.
  while (value->type.is_tensor()) {
    ++ways_[value->id];
    const Node* node = value->definition;
    if (node == nullptr) return;
    if (node->op->is(Trait::control)) return add_block_results(*node, value->index);
    if (!node->op->is(Trait::view)) return;
    value = node->inputs.front();
  }
}

void Escaping::add_block_results(const Node& node, size_t index) {
  for (const auto& block : node.blocks)
    if (index < block->results.size()) add(block->results[index]);
}

bool Escaping::only_through(const Node& view) const {
  const Value* operand = view.inputs.front();
  return operand->definition != nullptr && operand->definition->op != &op::state &&
         ways_[operand->id] == ways_[view.output()->id];
}

}  // namespace janus::passes
