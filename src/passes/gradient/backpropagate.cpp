// See backpropagate.h. First the part of the graph that lies on a path from a target to an output
// is found, then its nodes are visited from the last to the first, each handing the gradient of its
// results to its operands.
#include "passes/gradient/backpropagate.h"

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "graph/op.h"
#include "ops/attributes.h"
#include "ops/expression.h"
#include "ops/list.h"
#include "passes/gradient/active_nodes.h"
#include "passes/gradient/control_gradient.h"
#include "passes/gradient/function_versions.h"
#include "passes/gradient/half_gradient.h"
#include "passes/reach/gradient_edges.h"

namespace janus::passes {

using graph::Node;
using graph::Type;
using graph::Value;

namespace {

/// Sums gradients by value, and is what a gradient rule sees of the node at hand.
class Backpropagation final : public graph::Vjp, public GradientSums {
 public:
  Backpropagation(graph::Builder& builder, const ActiveNodes& active, size_t value_count,
                  FunctionVersions& versions, BlockDifferentiator& blocks)
      : builder_(builder),
        active_(active),
        versions_(versions),
        blocks_(blocks),
        gradients_(value_count) {}

  /// `sum` is carried from iteration to iteration, or from call to call.
  void carry(const Value* value, Value* sum) {
    carried_.insert(value);
    seed(value, sum);
  }

  void seed(const Value* output, Value* gradient) {
    GradientSums& sums = *this;
    sums.add(output, gradient);
  }

  std::vector<Value*> run(std::span<Value* const> targets) {
    const graph::SourceSpan span = builder_.span();
    const auto nodes = active_.nodes();
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) visit(**node);
    builder_.set_span(span);
    std::vector<Value*> gradients;
    for (const Value* target : targets) gradients.push_back(gradient(target));
    return gradients;
  }

  // For the rules of nodes with blocks.
  graph::Builder& builder() override { return builder_; }
  Value* gradient(const Value* value) const override {
    return value->id < gradients_.size() ? gradients_[value->id] : nullptr;
  }
  bool needs(const Value* value) const override {
    return carries_gradient(value->type) && active_.depends(value);
  }
  void add(const Value* value, Value* gradient) override {
    check_type(value, gradient);
    Value*& sum = gradients_[value->id];
    if (sum == nullptr) {
      sum = gradient;
    } else {
      Value* added = carried_.contains(value) ? added_in_place(sum, gradient) : nullptr;
      sum = added != nullptr ? added : sum_of(sum, gradient);
    }
    if (sum->name.empty() && sum->definition != nullptr) sum->name = "d_" + value->name;
  }
  void replace(const Value* value, Value* gradient) override {
    check_type(value, gradient);
    gradients_[value->id] = gradient;
    if (gradient->name.empty()) gradient->name = "d_" + value->name;
  }

  // For the rules of all others.
  const Node& node() const override { return *node_; }
  Value* in(size_t index) const override { return node_->inputs.at(index); }
  Value* out(size_t index) const override { return node_->outputs.at(index); }
  Value* dout(size_t index) const override { return gradient(node_->outputs.at(index)); }
  bool needs(size_t input) const override { return needs(in(input)); }
  void add(size_t input, Value* gradient) override {
    if (needs(input)) add(in(input), gradient);
  }
  Value* add_output(Type type, std::string attribute, graph::AttributeValue value) override {
    node_->attributes.set(std::move(attribute), std::move(value));
    return builder_.graph().new_output(*node_, std::move(type));
  }

 private:
  void visit(Node& node) {
    const auto has_gradient = [&](const Value* output) { return gradient(output) != nullptr; };
    if (std::ranges::none_of(node.outputs, has_gradient)) return;
    node_ = &node;
    builder_.set_span(node.span);
    if (differentiate_control(node, *this, blocks_, versions_)) return;
    if (node.op->vjp == nullptr)
      throw graph::TypeError(cat(node.op->name, ": its gradient is not known"));
    if (HalfGradient::fits(node)) {
      HalfGradient wide(*this);
      node.op->vjp(wide);
    } else {
      node.op->vjp(*this);
    }
  }

  Value* sum_of(Value* a, Value* b) {
    if (!a->type.is_tensor()) return op::list_sum(builder_, {a, b});
    Value* joined = joined_parts(a, b);
    if (joined == nullptr) joined = joined_parts(b, a);
    return joined != nullptr ? joined : op::add(builder_, {a, b});
  }

  /// Two gradients of which each is zero but for a part, where the second part follows the first:
  /// both parts side by side, as eager puts together what `chunk` took apart. Else null.
  Value* joined_parts(const Value* first, const Value* second) {
    const Node *a = first->definition, *b = second->definition;
    if (a == nullptr || b == nullptr || a->op != &op::slice_backward || b->op != a->op)
      return nullptr;
    const auto number = [](const Node& node, std::string_view name) {
      return ops::dim_attribute(node.attributes, name);
    };
    const bool adjoin = number(*a, "dim") == number(*b, "dim") && number(*a, "step").is(1) &&
                        number(*b, "step").is(1) && number(*a, "end") == number(*b, "start");
    if (!adjoin) return nullptr;
    const int64_t dim = number(*a, "dim").value();
    std::vector<ops::Expression> joined;
    for (const Node* each : {a, b}) {
      const Node* made = each->inputs[0]->definition;
      const bool is_joined =
          made != nullptr && made->op == &op::cat && number(*made, "dim").is(dim);
      const auto& parts = is_joined ? made->inputs : each->inputs;
      for (Value* part : parts) joined.emplace_back(builder_, part);
    }
    Value* parts = ops::apply_node(op::cat, joined, {{"dim", dim}})->output();
    if (parts->type == first->type) return parts;
    graph::Attributes attributes = a->attributes;
    attributes.set("end", *b->attributes.find("end"));
    return op::slice_backward(builder_, {parts}, std::move(attributes));
  }

  /// `sum` plus a product, or plus a row: computed by one operator, which needs no memory for what
  /// is added, and none for the result where nobody else has the sum. Null if it is neither.
  Value* added_in_place(Value* sum, const Value* gradient) {
    const Node* made = gradient->definition;
    if (made == nullptr) return nullptr;
    if (made->op == &op::mm) return op::addmm(builder_, {sum, made->inputs[0], made->inputs[1]});
    if (made->op == &op::row_backward)
      return op::add_to_row(builder_, {sum, made->inputs[0], made->inputs[1]});
    return nullptr;
  }

  void check_type(const Value* value, const Value* gradient) const {
    TORCHJANUS_CHECK(gradient->type == value->type, "gradient of ",
                     node_ == nullptr ? "an output" : node_->op->name, ": expected ", value->type,
                     ", the rule gave ", gradient->type);
  }

  graph::Builder& builder_;
  const ActiveNodes& active_;
  FunctionVersions& versions_;
  BlockDifferentiator& blocks_;
  std::vector<Value*> gradients_;  // by Value::id; null: zero so far
  std::unordered_set<const Value*> carried_;
  Node* node_ = nullptr;
};

/// One run of differentiation: of the graph's own nodes, and of the blocks that its rules come to.
/// They share the versions of functions.
class Differentiation final : public BlockDifferentiator {
 public:
  std::vector<Value*> differentiate(graph::Builder& builder, const graph::Block& block,
                                    std::span<Value* const> outputs, std::span<Value* const> seeds,
                                    std::span<Value* const> targets,
                                    std::span<Value* const> sums) override {
    const size_t value_count = builder.graph().value_count();
    const ActiveNodes active(value_count, outputs, targets, &block);
    Backpropagation backward(builder, active, value_count, versions_, *this);
    for (size_t i = 0; i < targets.size(); ++i)
      if (sums[i] != nullptr) backward.carry(targets[i], sums[i]);
    for (size_t i = 0; i < outputs.size(); ++i)
      if (active.depends(outputs[i])) backward.seed(outputs[i], seeds[i]);
    return backward.run(targets);
  }

  /// All nodes that lead to the outputs, wherever they stand.
  std::vector<Value*> differentiate(graph::Builder& builder, std::span<Value* const> outputs,
                                    std::span<Value* const> seeds,
                                    std::span<Value* const> targets) {
    const size_t value_count = builder.graph().value_count();
    const ActiveNodes active(value_count, outputs, targets, nullptr);
    Backpropagation backward(builder, active, value_count, versions_, *this);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const bool given = !seeds[i]->type.is_none();
      if (active.depends(outputs[i]))
        backward.seed(outputs[i], given ? seeds[i] : one(builder, outputs[i]->type));
    }
    return backward.run(targets);
  }

 private:
  static Value* one(graph::Builder& builder, const Type& type) {
    for (const graph::Dim& dim : type.shape)
      if (!dim.is(1))
        throw graph::TypeError(
            cat("gradient: an output without a gradient to start from has type ", type));
    return filled(builder, type, 1);
  }

  FunctionVersions versions_;
};

}  // namespace

Value* filled(graph::Builder& builder, const Type& type, double number) {
  return op::full(builder, {builder.constant(number)},
                  {{"size", type.shape}, {"dtype", type.dtype}});
}

std::vector<Value*> backpropagate(graph::Builder& builder, std::span<Value* const> outputs,
                                  std::span<Value* const> seeds, std::span<Value* const> targets) {
  TORCHJANUS_CHECK(outputs.size() == seeds.size(), "gradient: ", outputs.size(), " outputs, ",
                   seeds.size(), " seeds");
  return Differentiation().differentiate(builder, outputs, seeds, targets);
}

}  // namespace janus::passes
