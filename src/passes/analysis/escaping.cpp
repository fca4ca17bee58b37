// See escaping.h.
#include "passes/analysis/escaping.h"

#include "graph/functions.h"
#include "graph/op.h"
#include "ops/list.h"

namespace janus::passes {

using graph::Node;
using graph::Trait;
using graph::Value;

namespace {

/// Whether the result is the first operand, or lies as that does.
bool lies_as_operand(const graph::OpDef& op) {
  const graph::Layout layout = graph::layout_of(op);
  return layout == graph::Layout::view || layout == graph::Layout::first_operand;
}

}  // namespace

Escaping::Escaping(const graph::Graph& graph) : ways_(graph.value_count()) {
  graph::for_each_node(graph.body(), [&](const Node& node) {
    if (node.op == &op::call) calls_[graph::function_name(node)].push_back(&node);
  });
  for (const Value* result : graph.results()) add(result);
  graph::for_each_node(graph.body(), [&](const Node& node) {
    if (node.op == &op::rebind || node.op == &op::opaque || node.op == &op::opaque_backward)
      for (const Value* input : node.inputs) add(input);
  });
}

void Escaping::add(const Value* value) {
  // Numbers have no identity that a graph could change.
  while (value->type.is_tensor()) {
    const bool again = ways_[value->id]++ > 0;
    const Node* node = value->definition;
    if (node == nullptr) {
      if (value->owner->parent != nullptr && !again) add_given(*value->owner->parent, value->index);
      return;
    }
    if (node->op == &op::call) {
      const Node* function = graph::callee(*node);
      if (!again && function != nullptr) add_block_results(*function, value->index);
      return;
    }
    if (node->op == &op::while_) return add_carried(*node, value->index);
    if (node->op->is(Trait::control)) return add_block_results(*node, value->index);
    if (!lies_as_operand(*node->op)) return;
    value = node->inputs.front();
  }
}

/// What a parameter of a node's block stands for.
void Escaping::add_given(const Node& node, size_t index) {
  if (node.op != &op::function) return add_carried(node, index);
  for (const Node* call : calls_[graph::function_name(node)]) add(call->inputs[index]);
}

void Escaping::add_carried(const Node& loop, size_t index) {
  if (loop.op != &op::while_) return;
  add(loop.inputs[index]);
  const Value* next = loop.blocks[1]->results[index];
  if (next->definition != nullptr || ways_[next->id] == 0) add(next);
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
