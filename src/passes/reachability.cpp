// See reachability.h.
#include "passes/reachability.h"

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "graph/builder.h"
#include "ops/list.h"

namespace janus::passes {

using graph::Node;
using graph::Value;

namespace {

/// Adds to `found` the values that the nodes of `block` use, or that it gives, from outside of
/// `inside` (which starts with the blocks around and collects what is defined on the way).
void collect_outer_values(const graph::Block& block, std::unordered_set<const Value*>& inside,
                          std::vector<Value*>& found) {
  inside.insert(block.parameters.begin(), block.parameters.end());
  const auto use = [&](Value* value) {
    if (inside.insert(value).second) found.push_back(value);
  };
  for (const Node* node : block.nodes) {
    std::ranges::for_each(node->inputs, use);
    for (const auto& nested : node->blocks) collect_outer_values(*nested, inside, found);
    inside.insert(node->outputs.begin(), node->outputs.end());
  }
  std::ranges::for_each(block.results, use);
}

bool any_carries_gradient(std::span<Value* const> values) {
  return std::ranges::any_of(values, [](const Value* v) { return carries_gradient(v->type); });
}

/// Calls `visit` once for each value that a gradient of `outputs` flows to, outputs included.
template <class Visit>
void for_each_reached(std::span<Value* const> outputs, Visit&& visit) {
  std::unordered_set<const Value*> seen;
  std::vector<Value*> pending;
  const auto reach = [&](Value* value) {
    if (carries_gradient(value->type) && seen.insert(value).second) pending.push_back(value);
  };
  std::ranges::for_each(outputs, reach);
  while (!pending.empty()) {
    Value* value = pending.back();
    pending.pop_back();
    visit(value);
    if (value->definition != nullptr && passes_gradient(*value->definition))
      std::ranges::for_each(operands(*value->definition), reach);
  }
}

/// A gradient rule's view of a copy of a node whose operands and results are bare parameters.
class Probe final : public graph::Vjp {
 public:
  explicit Probe(const Node& node) : graph_("probe"), builder_(graph_) {
    node_ = graph_.new_node(*node.op);
    node_->attributes = node.attributes;
    for (const Value* input : node.inputs) node_->inputs.push_back(parameter(*input));
    for (const Value* output : node.outputs) {
      node_->outputs.push_back(parameter(*output));
      seeds_.push_back(parameter(*output));
    }
  }

  SavedValues run() {
    node_->op->vjp(*this);
    std::unordered_set<const Value*> used;
    mark_used(used);
    SavedValues result;
    for (const Value* input : node_->inputs) result.inputs.push_back(used.contains(input));
    for (const Value* output : node_->outputs) result.outputs.push_back(used.contains(output));
    return result;
  }

  graph::Builder& builder() override { return builder_; }
  const Node& node() const override { return *node_; }
  Value* in(size_t index) const override { return node_->inputs.at(index); }
  Value* out(size_t index) const override { return node_->outputs.at(index); }
  Value* dout(size_t index) const override { return seeds_.at(index); }
  bool needs(size_t input) const override { return carries_gradient(in(input)->type); }
  void add(size_t, Value* gradient) override { gradients_.push_back(gradient); }

 private:
  Value* parameter(const Value& like) { return builder_.input(like.type, like.name); }

  /// Backward from the gradients: what the rule built but does not use does not count.
  void mark_used(std::unordered_set<const Value*>& used) const {
    used.insert(gradients_.begin(), gradients_.end());
    const auto& nodes = graph_.body().nodes;
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      const auto is_used = [&](const Value* output) { return used.contains(output); };
      if (std::ranges::any_of((*node)->outputs, is_used))
        used.insert((*node)->inputs.begin(), (*node)->inputs.end());
    }
  }

  graph::Graph graph_;
  graph::Builder builder_;
  Node* node_;
  std::vector<Value*> seeds_, gradients_;
};

}  // namespace

bool carries_gradient(const graph::Type& type) {
  return type.is_tensor() && graph::is_differentiable(type.dtype);
}

bool passes_gradient(const Node& node) {
  if (node.op->is(graph::Trait::no_gradient) || node.op == &op::detach) return false;
  if (!any_carries_gradient(node.outputs)) return false;
  if (any_carries_gradient(node.inputs)) return true;
  return !node.blocks.empty() && any_carries_gradient(operands(node));
}

std::vector<Value*> operands(const Node& node) {
  std::vector<Value*> result = node.inputs;
  if (node.blocks.empty()) return result;
  std::unordered_set<const Value*> inside(result.begin(), result.end());
  for (const auto& block : node.blocks) collect_outer_values(*block, inside, result);
  return result;
}

std::vector<Value*> differentiable_leaves(std::span<Value* const> outputs) {
  std::vector<Value*> leaves;
  for_each_reached(outputs, [&](Value* value) {
    if (value->definition == nullptr || !passes_gradient(*value->definition))
      leaves.push_back(value);
  });
  std::ranges::sort(leaves, {}, &Value::id);
  return leaves;
}

std::vector<bool> reachable(std::span<Value* const> outputs, std::span<Value* const> targets) {
  std::unordered_set<const Value*> reached;
  for_each_reached(outputs, [&](const Value* value) { reached.insert(value); });
  std::vector<bool> result;
  for (const Value* target : targets) result.push_back(reached.contains(target));
  return result;
}

SavedValues saved_values(const Node& node) {
  if (node.op->vjp == nullptr)
    throw graph::TypeError(cat(node.op->name, ": there is no gradient rule"));
  return Probe(node).run();
}

}  // namespace janus::passes
