// See sums.h. All tensors are taken for sums at first; what can't be one goes, until nothing more
// does.
#include "passes/sums.h"

#include <algorithm>

#include "graph/functions.h"
#include "ops/list.h"
#include "passes/row_forms.h"

namespace janus::passes {

using graph::Block;
using graph::Node;
using graph::Value;

namespace {

const Block& block_of(const Node& function) { return *function.blocks.front(); }

/// For each result of a block that is this value, `visit(index)` must say yes.
template <class Visit>
bool all_results(const Block& block, const Value& value, Visit&& visit) {
  for (size_t i = 0; i < block.results.size(); ++i)
    if (block.results[i] == &value && !visit(i)) return false;
  return true;
}

}  // namespace

bool Sums::adds(const Node& node) const {
  const auto to = added_to(node);
  return to && contains(node.inputs[*to]) && contains(node.output());
}

bool Sums::is_ours(const Node* function) const {
  return std::find(functions_.begin(), functions_.end(), function) != functions_.end();
}

void Sums::collect() {
  const auto add = [&](const Value* value, const Block* block) {
    if (!value->type.is_tensor() || !is_floating(value->type.dtype)) return;
    sums_.insert(value);
    block_of_.emplace(value, block);
  };
  for (const Node* function : functions_) {
    for (const Value* parameter : block_of(*function).parameters)
      add(parameter, &block_of(*function));
    graph::for_each_node(block_of(*function), [&](const Node& node) {
      for (const Value* output : node.outputs) add(output, node.parent);
      if (added_to(node)) adding_.push_back(&node);
    });
  }
}

void Sums::find() {
  for (bool changed = true; changed;)
    changed = std::erase_if(sums_, [&](const Value* value) { return !is_sum(*value); }) > 0;
}

bool Sums::is_sum(const Value& value) const {
  return is_made_as_one(value) && is_used_as_one(value);
}

bool Sums::is_made_as_one(const Value& value) const {
  const Node* node = value.definition;
  if (node == nullptr) return true;  // a parameter of a function
  if (node->op == &op::if_)
    return std::ranges::all_of(
        node->blocks, [&](const auto& side) { return contains(side->results[value.index]); });
  if (node->op == &op::call) {
    const Node* function = graph::callee(*node);
    return is_ours(function) && contains(block_of(*function).results[value.index]);
  }
  const auto to = added_to(*node);
  return to && !cannot_add_.contains(node) && contains(node->inputs[*to]);
}

bool Sums::is_used_as_one(const Value& value) const {
  const Block& block = *block_of_.at(&value);
  return uses(value, block) <= 1 && is_used_well(value, block);
}

/// How often on one way through the block.
size_t Sums::uses(const Value& value, const Block& block) {
  size_t count = static_cast<size_t>(std::ranges::count(block.results, &value));
  for (const Node* node : block.nodes) {
    count += static_cast<size_t>(std::ranges::count(node->inputs, &value));
    size_t most = 0;
    for (const auto& nested : node->blocks) most = std::max(most, uses(value, *nested));
    count += most;
  }
  return count;
}

bool Sums::is_used_well(const Value& value, const Block& block) const {
  for (const Node* node : block.nodes) {
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      if (node->inputs[i] != &value) continue;
      const Node* function = node->op == &op::call ? graph::callee(*node) : nullptr;
      if (function != nullptr && is_ours(function)) {
        if (!contains(block_of(*function).parameters[i])) return false;
      } else if (added_to(*node) != i || !contains(node->output())) {
        return false;
      }
    }
    for (const auto& nested : node->blocks)
      if (!is_used_well(value, *nested)) return false;
    if (node->op == &op::if_)
      for (const auto& side : node->blocks)
        if (!all_results(*side, value, [&](size_t i) { return contains(node->outputs[i]); }))
          return false;
    if (node->op == &op::while_ && !std::ranges::all_of(node->blocks, [&](const auto& nested) {
          return all_results(*nested, value, [](size_t) { return false; });
        }))
      return false;
  }
  if (block.parent == nullptr || block.parent->op != &op::function) return true;
  // As a function's result: what calls in these functions give must be sums as well.
  return all_results(block, value, [&](size_t index) {
    for (const Node* function : functions_) {
      bool well = true;
      graph::for_each_node(block_of(*function), [&](const Node& node) {
        if (node.op == &op::call && graph::callee(node) == block.parent)
          well = well && contains(node.outputs[index]);
      });
      if (!well) return false;
    }
    return true;
  });
}

}  // namespace janus::passes
