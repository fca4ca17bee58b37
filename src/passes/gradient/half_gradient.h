// Gradients of operators on half precision, where eager has one operator for the whole gradient:
// it computes in float32 and rounds once, and so do the several operators of our rule.
#pragma once

#include <algorithm>

#include "ops/list.h"

namespace janus::passes {

/// A rule's view of a node with half precision: operands, results and their gradients in float32.
class HalfGradient final : public graph::Vjp {
 public:
  explicit HalfGradient(graph::Vjp& around) : around_(around) {}

  /// Of one tensor, where eager computes the gradient at once.
  static bool fits(const graph::Node& node) {
    const auto is_half = [](const graph::Value* value) {
      return value->type.is_tensor() && graph::is_half(value->type.dtype);
    };
    const graph::HalfGradient stated = node.op->half_gradient;
    const bool at_once = stated == graph::HalfGradient::unstated
                             ? node.op->is(graph::Trait::elementwise)
                             : stated == graph::HalfGradient::at_once;
    const auto tensors = std::ranges::count_if(
        node.inputs, [](const graph::Value* input) { return input->type.is_tensor(); });
    return at_once && tensors == 1 && is_half(node.inputs[0]) && node.outputs.size() == 1 &&
           is_half(node.output());
  }

  graph::Builder& builder() override { return around_.builder(); }
  const graph::Node& node() const override { return around_.node(); }
  graph::Value* in(size_t index) const override { return wide(around_.in(index)); }
  graph::Value* out(size_t index) const override { return wide(around_.out(index)); }
  graph::Value* dout(size_t index) const override { return wide(around_.dout(index)); }
  bool needs(size_t input) const override { return around_.needs(input); }
  void add(size_t input, graph::Value* gradient) override {
    if (needs(input)) around_.add(input, cast(gradient, around_.in(input)->type.dtype));
  }
  graph::Value* add_output(graph::Type type, std::string attribute,
                           graph::AttributeValue value) override {
    return around_.add_output(std::move(type), std::move(attribute), std::move(value));
  }

 private:
  graph::Value* wide(graph::Value* value) const { return cast(value, graph::DType::f32); }
  graph::Value* cast(graph::Value* value, graph::DType dtype) const {
    if (value == nullptr || !value->type.is_tensor() || value->type.dtype == dtype) return value;
    return op::to(around_.builder(), {value}, {{"dtype", dtype}});
  }

  graph::Vjp& around_;
};

}  // namespace janus::passes
