#include "frontend/autograd/gradient_flags.h"

#include <algorithm>

#include "frontend/autograd/gradient_reachability.h"
#include "frontend/autograd/tracked_values.h"
#include "frontend/core/recursion_state.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/restart.h"
#include "ops/list.h"
#include "passes/reach/reachability.h"

namespace janus::frontend {

namespace {

constexpr const char* kGradientVaries = "whether a tensor requires a gradient varies";
constexpr const char* kGradientDepends = "it decides whether a tensor requires a gradient";

bool may_lack_gradient(const AutogradState& autograd, const Tensor& tensor) {
  return tensor.requires_grad && !tensor.is_leaf && autograd.gradients_vary;
}

/// Whether a gradient of it would come to a leaf.
GradientReachability::Reached requirement_of(Interpreter& interpreter, const Tensor& tensor) {
  if (!may_lack_gradient(interpreter, tensor)) return {};
  if (interpreter.recursion().is_building() || !is_current(tensor))
    interpreter.refuse(ReasonCode::autograd, kGradientVaries);
  return GradientReachability(interpreter, {tensor.value}).of(values_of_leaves(interpreter));
}

}  // namespace

graph::Value* gradient_flag(Interpreter& interpreter, const Tensor& tensor) {
  return requirement_of(interpreter, tensor).flag;
}

bool shows_gradient(Interpreter& interpreter, const Tensor& tensor) {
  const GradientReachability::Reached requirement = requirement_of(interpreter, tensor);
  if (requirement.flag == nullptr) return tensor.requires_grad;
  if (const auto outcome = interpreter.outcome_of(requirement.flag)) return *outcome;
  if (interpreter.recursion().is_first_activation(requirement.test))
    interpreter.refuse(ReasonCode::autograd, kGradientVaries);
  throw CannotMerge{requirement.test, kGradientDepends};
}

bool is_tracked_on_one_side(const graph::Value& value) {
  const graph::Node* node = value.definition;
  if (node == nullptr || node->op != &op::if_) return false;
  const auto is_untracked = [&](size_t side) {
    const graph::Node* made_by = node->blocks[side]->results[value.index]->definition;
    return made_by != nullptr && made_by->op == &op::detach;
  };
  return is_untracked(0) != is_untracked(1);
}

void expect_known_gradient(Interpreter& interpreter, const Tensor& tensor) {
  if (!may_lack_gradient(interpreter, tensor)) return;
  graph::Value* first = nullptr;
  const std::vector<graph::Value*> values{tensor.value};
  for (graph::Value* value : passes::reached_from(values, passes::Paths::any))
    if (is_tracked_on_one_side(*value) && (first == nullptr || value->id < first->id))
      first = value;
  if (first == nullptr) return;
  const auto test = interpreter.scope_nodes.find(first->definition);
  const RecursionState& recursion = interpreter.recursion();
  if (test == interpreter.scope_nodes.end() || recursion.is_building() ||
      recursion.is_first_activation(test->second))
    return;
  throw CannotMerge{test->second, kGradientDepends};
}

}  // namespace janus::frontend
