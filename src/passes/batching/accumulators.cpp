// See accumulators.h. All tensors are taken for sums at first; what can't be one goes, until
// nothing more does.
#include "passes/batching/accumulators.h"

#include <algorithm>

#include "graph/functions.h"
#include "ops/list.h"
#include "passes/batching/batching_rules.h"

namespace janus::passes {

using graph::Block;
using graph::body_of;
using graph::loop_body;
using graph::Node;
using graph::Value;

namespace {

/// For each result of a block that is this value, `visit(index)` must say yes.
template <class Visit>
bool all_results(const Block& block, const Value& value, Visit&& visit) {
  for (size_t i = 0; i < block.results.size(); ++i)
    if (block.results[i] == &value && !visit(i)) return false;
  return true;
}

}  // namespace

bool Accumulators::adds(const Node& node) const {
  const auto to = added_to(node);
  return to && contains(node.inputs[*to]) && contains(node.output());
}

bool Accumulators::is_ours(const Node* function) const {
  return std::find(functions_.begin(), functions_.end(), function) != functions_.end();
}

void Accumulators::collect() {
  const auto add = [&](const Value* value, const Block* block) {
    if (!value->type.is_tensor() || !is_floating(value->type.dtype)) return;
    sums_.insert(value);
    block_of_.emplace(value, block);
  };
  for (const Node* function : functions_) {
    for (const Value* parameter : body_of(*function).parameters)
      add(parameter, &body_of(*function));
    graph::for_each_node(body_of(*function), [&](const Node& node) {
      for (const Value* output : node.outputs) add(output, node.parent);
      if (node.op == &op::while_)
        for (const Value* parameter : loop_body(node).parameters) add(parameter, &loop_body(node));
      if (added_to(node)) adding_.push_back(&node);
    });
  }
}

void Accumulators::find() {
  for (bool changed = true; changed;)
    changed = std::erase_if(sums_, [&](const Value* value) { return !is_sum(*value); }) > 0;
}

bool Accumulators::is_sum(const Value& value) const {
  return is_made_as_one(value) && is_used_as_one(value);
}

bool Accumulators::is_made_as_one(const Value& value) const {
  const Node* node = value.definition;
  if (node == nullptr) return true;  // a parameter of a function or iteration
  if (node->op == &op::while_) return contains(loop_body(*node).results[value.index]);
  if (node->op == &op::if_)
    return std::ranges::all_of(
        node->blocks, [&](const auto& side) { return contains(side->results[value.index]); });
  if (node->op == &op::call) {
    const Node* function = graph::callee(*node);
    return is_ours(function) && contains(body_of(*function).results[value.index]);
  }
  const auto to = added_to(*node);
  return to && !cannot_add_.contains(node) && contains(node->inputs[*to]);
}

bool Accumulators::is_used_as_one(const Value& value) const {
  const Block& block = *block_of_.at(&value);
  return uses(value, block) <= 1 && is_used_well(value, block);
}

/// How often on one way through the block.
size_t Accumulators::uses(const Value& value, const Block& block) {
  size_t count = static_cast<size_t>(std::ranges::count(block.results, &value));
  for (const Node* node : block.nodes) {
    count += static_cast<size_t>(std::ranges::count(node->inputs, &value));
    size_t most = 0;
    for (const auto& nested : node->blocks) most = std::max(most, uses(value, *nested));
    count += most;
  }
  return count;
}

bool Accumulators::is_used_well(const Value& value, const Block& block) const {
  return std::ranges::all_of(block.nodes,
                             [&](const Node* node) { return is_used_well(value, *node); }) &&
         leaves_well(value, block);
}

bool Accumulators::is_used_well(const Value& value, const Node& user) const {
  for (size_t i = 0; i < user.inputs.size(); ++i) {
    if (user.inputs[i] != &value) continue;
    const Node* function = user.op == &op::call ? graph::callee(user) : nullptr;
    if (function != nullptr && is_ours(function)) {
      if (!contains(body_of(*function).parameters[i])) return false;
    } else if (user.op == &op::while_) {
      if (!is_handed_on(user, i)) return false;
    } else if (added_to(user) != i || !contains(user.output())) {
      return false;
    }
  }
  // In each iteration of a loop it would be used once more.
  if (user.op == &op::while_)
    return std::ranges::all_of(user.blocks,
                               [&](const auto& nested) { return uses(value, *nested) == 0; });
  return std::ranges::all_of(user.blocks,
                             [&](const auto& nested) { return is_used_well(value, *nested); });
}

/// Whether the loop's iterations and what it gives go on with it, and its test does without it.
bool Accumulators::is_handed_on(const Node& loop, size_t index) const {
  return contains(loop_body(loop).parameters[index]) &&
         uses(*loop.blocks[0]->parameters[index], *loop.blocks[0]) == 0;
}

/// Whether it is nothing but a summand of other sums.
bool Accumulators::is_added(const Value& value, const Block& block) const {
  if (std::ranges::count(block.results, &value) > 0) return false;
  return std::ranges::all_of(block.nodes, [&](const Node* node) {
    const bool within = std::ranges::any_of(
        node->blocks, [&](const auto& nested) { return uses(value, *nested) > 0; });
    if (within || std::ranges::count(node->inputs, &value) == 0) return !within;
    return adds(*node) && node->inputs[*added_to(*node)] != &value;
  });
}

/// Where it is a result of the block: whether it is a sum behind that as well.
bool Accumulators::leaves_well(const Value& value, const Block& block) const {
  const Node* around = block.parent;
  if (around == nullptr) return true;
  if (around->op == &op::if_)
    return all_results(block, value, [&](size_t i) { return contains(around->outputs[i]); });
  if (around->op == &op::while_)
    return all_results(block, value, [&](size_t i) {
      return contains(around->blocks[1]->parameters[i]) &&
             (contains(around->outputs[i]) || once_.contains(around->parent) ||
              is_added(*around->outputs[i], *around->parent));
    });
  // Of a function: what calls in these functions give must be sums as well.
  return all_results(block, value, [&](size_t index) {
    return std::ranges::all_of(functions_, [&](const Node* function) {
      bool well = true;
      graph::for_each_node(body_of(*function), [&](const Node& node) {
        if (node.op == &op::call && graph::callee(node) == around)
          well = well && contains(node.outputs[index]);
      });
      return well;
    });
  });
}

}  // namespace janus::passes
