// See escaping.h.
#include "passes/analysis/escaping.h"

#include <algorithm>
#include <span>

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

/// Whether the value is a tensor, or a list that holds tensors. A frame is the runs' own.
bool holds_tensors(const graph::Type& type) {
  if (type.is_tensor()) return true;
  return type.kind == graph::Type::Kind::list && holds_tensors(type.elements.front());
}

/// The operands that the result, or an element of it, may be, or lie as.
std::span<const Value* const> handed_on(const Node& node) {
  const std::span<const Value* const> inputs(node.inputs);
  for (const graph::OpDef* op : {&op::list_push, &op::list_join, &op::list_sum})
    if (node.op == op) return inputs;
  for (const graph::OpDef* op : {&op::list_pop, &op::list_item, &op::list_slice, &op::list_reverse,
                                 &op::list_resize, &op::list_only, &op::list_unstack})
    if (node.op == op) return inputs.first(1);
  return lies_as_operand(*node.op) ? inputs.first(1) : inputs.first(0);
}

/// Whether the run has made the tensor: it is none that an input, a cell or a list may have held.
bool is_new(const Value* value) {
  const Node* node = value->definition;
  if (node == nullptr || node->op == &op::state || node->op == &op::call) return false;
  if (node->op == &op::while_ && !is_new(node->inputs[value->index])) return false;
  if (node->op == &op::while_) return is_new(node->blocks[1]->results[value->index]);
  if (node->op->is(Trait::control))
    return std::ranges::all_of(
        node->blocks, [&](const auto& block) { return is_new(block->results[value->index]); });
  const auto operands = handed_on(*node);
  return operands.empty() || operands.front()->type.is_tensor();
}

/// Whether both run once, each time that the operand's block does.
bool run_alike(const graph::Block* operand, const graph::Block* view) {
  while (view != operand) {
    const Node* around = view->parent;
    if (around == nullptr || around->op != &op::if_) return false;
    view = around->parent;
  }
  return true;
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
  while (holds_tensors(value->type)) {
    const bool again = ways_[value->id]++ > 0;
    if (again && !value->type.is_tensor()) return;  // its elements are known
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
    const auto operands = handed_on(*node);
    if (operands.empty()) return;
    for (const Value* element : operands.subspan(1)) add(element);
    value = operands.front();
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
  return is_new(operand) && ways_[operand->id] == ways_[view.output()->id] &&
         run_alike(operand->definition->parent, view.parent);
}

}  // namespace janus::passes
