// See saved_values.h.
#include "passes/gradient/saved_values.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "graph/builder.h"
#include "passes/lowering/decompose.h"
#include "passes/reach/gradient_edges.h"
#include "passes/structure/graph_of_node.h"

namespace janus::passes {

using graph::Node;
using graph::Value;

namespace {

/// A gradient rule's view of a copy of a node whose operands and results are bare parameters.
class Probe final : public graph::Vjp {
 public:
  explicit Probe(const Node& node) : graph_("probe"), builder_(graph_) {
    node_ = graph_.new_node(*node.op);
    node_->attributes = node.attributes;
    for (const Value* input : node.inputs) node_->inputs.push_back(copy_of(*input));
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
  /// Null of a result that there is not, as of a gradient that is not wanted.
  Value* dout(size_t index) const override {
    return carries_gradient(out(index)->type) ? seeds_.at(index) : nullptr;
  }
  bool needs(size_t input) const override { return carries_gradient(in(input)->type); }
  void add(size_t, Value* gradient) override { gradients_.push_back(gradient); }
  Value* add_output(graph::Type type, std::string attribute, graph::AttributeValue value) override {
    node_->attributes.set(std::move(attribute), std::move(value));
    return graph_.new_output(*node_, std::move(type));
  }

 private:
  /// Rules look at constants, such as the order of a norm.
  Value* copy_of(const Value& input) {
    const Node* definition = input.definition;
    if (definition == nullptr || definition->op->role != graph::Role::constant)
      return parameter(input);
    return builder_.append(*definition->op, {}, definition->attributes)->output();
  }

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

SavedValues saved_values(const Node& node) {
  if (node.op->is(graph::Trait::composite)) return saved_by_parts(node);
  if (node.op->vjp == nullptr)
    throw graph::TypeError(cat(node.op->name, ": there is no gradient rule"));
  return Probe(node).run();
}

bool eager_saves_result(const Node& node, size_t index) {
  if (graph::saves_of(*node.op) == graph::Saves::result) return true;
  const auto flags = node.attributes.get_or<std::vector<bool>>("_saves_results", {});
  return index < flags.size() && flags[index];
}

}  // namespace janus::passes
