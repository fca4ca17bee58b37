// See backpropagate.h. First the part of the graph that lies on a path from a target to an output
// is found, then its nodes are visited from the last to the first, each handing the gradient of its
// results to its operands.
#include "passes/backpropagate.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "graph/op.h"
#include "ops/expression.h"
#include "ops/list.h"
#include "passes/reachability.h"

namespace janus::passes {

using graph::Node;
using graph::Type;
using graph::Value;

namespace {

/// The nodes between targets and outputs.
class Region {
 public:
  Region(size_t value_count, std::span<Value* const> outputs, std::span<Value* const> targets)
      : depends_(value_count) {
    collect(outputs);
    for (const Value* target : targets) depends_[target->id] = true;
    for (const Node* node : nodes_) mark(*node);
    std::erase_if(nodes_, [&](const Node* node) { return !hands_on(*node); });
  }

  /// In program order.
  std::span<Node* const> nodes() const { return nodes_; }
  /// Whether the value is a target or computed from one.
  bool depends(const Value* value) const { return depends_[value->id]; }

 private:
  /// All nodes that a gradient of the outputs can come to.
  void collect(std::span<Value* const> outputs) {
    std::set<const Node*> seen;
    std::vector<Value*> pending(outputs.begin(), outputs.end());
    while (!pending.empty()) {
      const Value* value = pending.back();
      pending.pop_back();
      Node* node = value->definition;
      if (node == nullptr || !carries_gradient(value->type) || !passes_gradient(*node)) continue;
      if (!seen.insert(node).second) continue;
      nodes_.push_back(node);
      for (Value* operand : operands(*node)) pending.push_back(operand);
    }
    // Values are numbered as they are made: in program order.
    std::ranges::sort(nodes_, {}, [](const Node* node) { return node->output()->id; });
  }

  bool hands_on(const Node& node) const {
    return std::ranges::any_of(operands(node), [&](const Value* operand) {
      return carries_gradient(operand->type) && depends_[operand->id];
    });
  }

  void mark(const Node& node) {
    if (!hands_on(node)) return;
    for (const Value* output : node.outputs)
      if (carries_gradient(output->type)) depends_[output->id] = true;
  }

  std::vector<Node*> nodes_;
  std::vector<bool> depends_;
};

/// Sums gradients by value, and is what a gradient rule sees of the node at hand.
class Backpropagation final : public graph::Vjp {
 public:
  Backpropagation(graph::Builder& builder, const Region& region, size_t value_count)
      : builder_(builder), region_(region), gradients_(value_count) {}

  void seed(const Value* output, Value* gradient) { accumulate(output, gradient); }

  void run() {
    const graph::SourceSpan span = builder_.span();
    const auto nodes = region_.nodes();
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) visit(**node);
    builder_.set_span(span);
  }

  Value* gradient(const Value* value) const { return gradients_[value->id]; }

  graph::Builder& builder() override { return builder_; }
  const Node& node() const override { return *node_; }
  Value* in(size_t index) const override { return node_->inputs.at(index); }
  Value* out(size_t index) const override { return node_->outputs.at(index); }
  Value* dout(size_t index) const override { return gradient(node_->outputs.at(index)); }
  bool needs(size_t input) const override {
    const Value* operand = in(input);
    return carries_gradient(operand->type) && region_.depends(operand);
  }
  void add(size_t input, Value* gradient) override {
    if (needs(input)) accumulate(in(input), gradient);
  }

 private:
  void visit(const Node& node) {
    const auto has_gradient = [&](const Value* output) { return gradient(output) != nullptr; };
    if (std::ranges::none_of(node.outputs, has_gradient)) return;
    node_ = &node;
    builder_.set_span(node.span);
    if (node.op->vjp == nullptr)
      throw graph::TypeError(cat(node.op->name, ": its gradient is not known"));
    node.op->vjp(*this);
  }

  void accumulate(const Value* value, Value* gradient) {
    TORCHJANUS_CHECK(gradient->type == value->type, "gradient of ",
                     node_ == nullptr ? "an output" : node_->op->name, ": expected ", value->type,
                     ", the rule gave ", gradient->type);
    Value*& sum = gradients_[value->id];
    sum = sum == nullptr ? gradient : op::add(builder_, {sum, gradient});
    if (sum->name.empty() && sum->definition != nullptr) sum->name = "d_" + value->name;
  }

  graph::Builder& builder_;
  const Region& region_;
  std::vector<Value*> gradients_;  // by Value::id; null: zero so far
  const Node* node_ = nullptr;
};

Value* one(graph::Builder& builder, const Type& type) {
  for (const graph::Dim& dim : type.shape)
    if (!dim.is(1))
      throw graph::TypeError(
          cat("gradient: an output without a gradient to start from has type ", type));
  return filled(builder, type, 1);
}

}  // namespace

Value* filled(graph::Builder& builder, const Type& type, double number) {
  return op::full(builder, {builder.constant(number)},
                  {{"size", type.shape}, {"dtype", type.dtype}});
}

std::vector<Value*> backpropagate(graph::Builder& builder, std::span<Value* const> outputs,
                                  std::span<Value* const> seeds, std::span<Value* const> targets) {
  TORCHJANUS_CHECK(outputs.size() == seeds.size(), "gradient: ", outputs.size(), " outputs, ",
                   seeds.size(), " seeds");
  const size_t value_count = builder.graph().value_count();
  const Region region(value_count, outputs, targets);
  Backpropagation backward(builder, region, value_count);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!region.depends(outputs[i])) continue;
    const bool given = !seeds[i]->type.is_none();
    backward.seed(outputs[i], given ? seeds[i] : one(builder, outputs[i]->type));
  }
  backward.run();
  std::vector<Value*> gradients;
  for (const Value* target : targets) gradients.push_back(backward.gradient(target));
  return gradients;
}

}  // namespace janus::passes
