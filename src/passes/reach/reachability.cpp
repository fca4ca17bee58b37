// See reachability.h.
#include "passes/reach/reachability.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/check.h"
#include "graph/builder.h"
#include "graph/copier.h"
#include "graph/functions.h"
#include "ops/list.h"
#include "passes/passes.h"
#include "passes/reach/composite_reach.h"
#include "passes/reach/control_reach.h"
#include "passes/reach/list_reach.h"

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

/// The same for the node's blocks and the functions that it runs.
void collect_outer_values(const Node& node, std::unordered_set<const Value*>& inside,
                          std::vector<Value*>& found) {
  for (const auto& block : node.blocks) collect_outer_values(*block, inside, found);
  for (const Node* function : graph::functions_run_by(node))
    collect_outer_values(*function->blocks.front(), inside, found);
}

bool any_carries_gradient(std::span<Value* const> values) {
  return std::ranges::any_of(values, [](const Value* v) { return carries_gradient(v->type); });
}

bool passes_gradient_nodes(const Reached& reached) {
  return std::ranges::any_of(reached, [](const Value* value) {
    return value->definition != nullptr && value->definition->op == &op::gradient &&
           passes_gradient(*value->definition);
  });
}

/// Copies what the given values are computed from into a graph of its own.
class Extract {
 public:
  Extract() : graph_("extract"), builder_(graph_) {}

  Value* copy_of(const Value* value) {
    std::vector<const Value*> pending = {value};
    while (!pending.empty()) {
      const Value* next = pending.back();
      const Node* node = next->definition;
      if (copies_.has(next)) {
        pending.pop_back();
      } else if (node == nullptr) {
        copies_.set(next, builder_.input(next->type, next->name));
      } else {
        const size_t before = pending.size();
        for (const Value* operand : operands(*node))
          if (!copies_.has(operand)) pending.push_back(operand);
        if (pending.size() == before) copy(*node);
      }
    }
    return copies_.copy_of(value);
  }

  graph::Graph take() { return std::move(graph_); }

 private:
  /// With the functions that it runs. What those use from outside has been copied: it is among the
  /// node's operands.
  void copy(const Node& node) {
    for (const Node* function : graph::functions_run_by(node))
      if (functions_.insert(function).second) copies_.copy(*function, builder_);
    copies_.copy(node, builder_);
  }

  graph::Graph graph_;
  graph::Builder builder_;
  graph::Copier copies_{graph::Copier::Unknown::error};
  std::unordered_set<const Node*> functions_;
};

/// reachable() on a copy in which `gradient` nodes are expanded. Throws TypeError if they can't be.
std::vector<bool> reachable_when_expanded(std::span<Value* const> outputs,
                                          std::span<Value* const> targets, Paths paths) {
  Extract extract;
  std::vector<Value*> values;
  for (const Value* output : outputs) values.push_back(extract.copy_of(output));
  for (const Value* target : targets) values.push_back(extract.copy_of(target));
  graph::Graph whole = extract.take();
  whole.body().results = values;
  const graph::Graph expanded = differentiate(decompose(whole));
  const Reached reached = reached_from(expanded.results().first(outputs.size()), paths);
  std::vector<bool> result;
  for (Value* target : expanded.results().subspan(outputs.size()))
    result.push_back(reached.contains(target));
  return result;
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
    for (size_t i = 0; i < seeds_.size(); ++i)
      result.outputs.push_back(used.contains(node_->outputs[i]));
    return result;
  }

  graph::Builder& builder() override { return builder_; }
  const Node& node() const override { return *node_; }
  Value* in(size_t index) const override { return node_->inputs.at(index); }
  Value* out(size_t index) const override { return node_->outputs.at(index); }
  Value* dout(size_t index) const override { return seeds_.at(index); }
  bool needs(size_t input) const override { return carries_gradient(in(input)->type); }
  void add(size_t, Value* gradient) override { gradients_.push_back(gradient); }
  Value* add_output(graph::Type type, std::string attribute, graph::AttributeValue value) override {
    node_->attributes.set(std::move(attribute), std::move(value));
    return graph_.new_output(*node_, std::move(type));
  }

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

/// What the parts of a composite operator save of its operands and results.
SavedValues saved_by_parts(const Node& composite) {
  const graph::Graph parts = decompose(graph_of(composite));
  std::unordered_set<const Value*> saved;
  for (const Node* part : parts.body().nodes) {
    if (!passes_gradient(*part)) continue;
    const SavedValues of_part = saved_values(*part);
    for (size_t i = 0; i < part->inputs.size(); ++i)
      if (of_part.inputs[i]) saved.insert(part->inputs[i]);
    for (size_t i = 0; i < part->outputs.size(); ++i)
      if (of_part.outputs[i]) saved.insert(part->outputs[i]);
  }
  SavedValues result;
  for (const Value* input : parts.inputs()) result.inputs.push_back(saved.contains(input));
  for (const Value* output : parts.results()) result.outputs.push_back(saved.contains(output));
  return result;
}

}  // namespace

std::vector<Value*> operands_reached(const Value& output, Paths paths,
                                     const FunctionReach* functions) {
  const Node& node = *output.definition;
  if (node.op == &op::if_ || node.op == &op::while_ || node.op == &op::call)
    return reached_through(output, paths, functions);
  if (paths != Paths::any && is_part_of_list(output)) {
    if (paths == Paths::certain_but_for_lists) return {};
    return is_taken_in_turn(node) ? operands(node)
                                  : reached_by_each_element(*node.inputs[0], functions);
  }
  if (!node.op->is(graph::Trait::composite) || node.inputs.size() < 2) return operands(node);
  const std::vector<bool> reached = inputs_reached_by_parts(output, paths);
  std::vector<Value*> result;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (reached[i]) result.push_back(node.inputs[i]);
  return result;
}

bool passes_gradient(const Node& node) {
  if (node.op->is(graph::Trait::no_gradient) || node.op == &op::detach) return false;
  if (node.op == &op::gradient && !node.attributes.get_or<bool>("create_graph", false))
    return false;
  if (!any_carries_gradient(node.outputs)) return false;
  if (any_carries_gradient(node.inputs)) return true;
  return any_carries_gradient(outer_values(node));
}

std::vector<Value*> operands(const Node& node) {
  std::vector<Value*> result = node.inputs;
  if (node.blocks.empty() && node.op != &op::call) return result;
  std::unordered_set<const Value*> inside(result.begin(), result.end());
  collect_outer_values(node, inside, result);
  return result;
}

std::vector<Value*> outer_values(const Node& node) {
  std::vector<Value*> result;
  std::unordered_set<const Value*> inside;
  collect_outer_values(node, inside, result);
  return result;
}

std::vector<Value*> differentiable_leaves(std::span<Value* const> outputs) {
  std::vector<Value*> leaves;
  for (Value* value : reached_from(outputs, Paths::any))
    if (value->definition == nullptr || !passes_gradient(*value->definition))
      leaves.push_back(value);
  std::ranges::sort(leaves, {}, &Value::id);
  const std::vector<bool> is_reached = reachable(outputs, leaves);
  std::vector<Value*> result;
  for (size_t i = 0; i < leaves.size(); ++i)
    if (is_reached[i]) result.push_back(leaves[i]);
  return result;
}

Reached reached_from(std::span<Value* const> outputs, Paths paths, const graph::Block* within,
                     const FunctionReach* functions) {
  Reached seen;
  std::vector<Value*> pending;
  const auto reach = [&](Value* value) {
    if (carries_gradient(value->type) && seen.insert(value).second) pending.push_back(value);
  };
  std::ranges::for_each(outputs, reach);
  while (!pending.empty()) {
    const Value* value = pending.back();
    const Node* node = value->definition;
    pending.pop_back();
    if (node == nullptr || (within != nullptr && node->parent != within)) continue;
    if (passes_gradient(*node))
      std::ranges::for_each(operands_reached(*value, paths, functions), reach);
  }
  return seen;
}

std::vector<bool> reachable(std::span<Value* const> outputs, std::span<Value* const> targets,
                            Paths paths) {
  const Reached reached = reached_from(outputs, paths);
  if (passes_gradient_nodes(reached)) {
    try {
      return reachable_when_expanded(outputs, targets, paths);
    } catch (const graph::TypeError&) {
      // No gradient rule: what may be reached counts as reached.
    }
  }
  std::vector<bool> result;
  for (Value* target : targets) result.push_back(reached.contains(target));
  return result;
}

SavedValues saved_values(const Node& node) {
  if (node.op->is(graph::Trait::composite)) return saved_by_parts(node);
  if (node.op->vjp == nullptr)
    throw graph::TypeError(cat(node.op->name, ": there is no gradient rule"));
  return Probe(node).run();
}

}  // namespace janus::passes
