// Gradients inside a run: backward() and torch.autograd.grad become `gradient` nodes, which the
// differentiation pass expands; `.grad` follows eager's rules (None: a new tensor, else an addition
// in place).
#include "frontend/autograd/autograd.h"

#include <algorithm>
#include <set>

#include "base/mutation.h"
#include "frontend/autograd/custom_gradient.h"
#include "frontend/autograd/freed.h"
#include "frontend/autograd/reached.h"
#include "frontend/autograd/requires_grad.h"
#include "frontend/core/recursion_state.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/strides.h"
#include "graph/functions.h"
#include "ops/list.h"
#include "passes/reach/reachability.h"
#include "frontend/values/restart.h"
#include "frontend/core/settled.h"
#include "frontend/autograd/gradient_nodes.h"
#include "frontend/tensors/grad_fn_name.h"
#include "passes/gradient/reachable.h"
#include "passes/gradient/saved_values.h"

namespace janus::frontend {

using python::Object;

// --- .grad --------------------------------------------------------------------------------------

void set_grad(Tensor& tensor, Value value) {
  tensor.grad_unread |= tensor.grad == nullptr;
  tensor.grad = std::move(value);
  tensor.grad_replaced = true;
}

std::vector<graph::Value*> values_of_leaves(const Interpreter& interpreter) {
  std::vector<graph::Value*> values;
  for (const auto* tensors : {&interpreter.entry_tensor_order, &interpreter.made_leaves})
    for (const auto& leaf : *tensors) {
      const std::vector<graph::Value*> tracked = tracked_values(interpreter, *leaf);
      values.insert(values.end(), tracked.begin(), tracked.end());
    }
  return values;
}

Value read_grad(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor) {
  if (tensor->grad != nullptr) return tensor->grad;
  if (!tensor->is_leaf)
    interpreter.refuse(ReasonCode::autograd, "the .grad of a tensor that is not a leaf");
  if (tensor->source == nullptr) {
    tensor->grad = interpreter.none();
    return tensor->grad;
  }
  Object grad = Object::steal(speculate::tensor_access().grad_of(tensor->object.get()));
  if (!grad) interpreter.refuse_raised();
  if (grad.is(Py_None)) {
    interpreter.assume(Assumption::Kind::no_grad_value, tensor->source);
    tensor->grad = interpreter.none();
  } else {
    tensor->grad = interpreter.wrap(grad.get(),
                                    interpreter.sources().step(Source::Kind::grad, tensor->source));
  }
  return tensor->grad;
}

void write_grad(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                const Value& value) {
  const auto* known = as<Known>(value);
  const auto* grad = as<Tensor>(value);
  if (grad == nullptr && (known == nullptr || !known->object.is(Py_None)))
    interpreter.refuse(ReasonCode::would_raise, "TypeError: .grad of another class");
  if (grad != nullptr && grad->value->type != tensor->value->type)
    interpreter.refuse(ReasonCode::would_raise, "RuntimeError: .grad of another shape or dtype");
  if (grad != nullptr && (grad->base != nullptr || grad->requires_grad))
    interpreter.refuse(ReasonCode::autograd, "the assignment of a view to .grad");
  set_grad(*tensor, value);
}

void clear_grad(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor) {
  if (tensor->source == nullptr || !tensor->is_leaf) expect_settled(read_grad(interpreter, tensor));
  if (!is_none(tensor->grad)) set_grad(*tensor, interpreter.none());
}

void finish_autograd(Interpreter& interpreter) {
  std::set<const Tensor*> bound_once;
  for (const auto& tensor : interpreter.entry_tensor_order) {
    if (!tensor->grad_replaced || is_planted(State::grad, Mutation::not_written)) continue;
    const auto* optional = as<Optional>(tensor->grad);
    auto grad = shared_as<Tensor>(optional != nullptr ? optional->value : tensor->grad);
    if (grad == nullptr && !tensor->grad_unread && !had_grad(*tensor)) continue;  // None as before
    std::string cell = interpreter.add_cell(speculate::CellBinding::Kind::grad, tensor->source);
    if (grad != nullptr && grad->source != nullptr)
      interpreter.refuse(ReasonCode::autograd, "an existing tensor becomes a .grad");
    if (grad != nullptr && grad->base != nullptr)
      interpreter.refuse(ReasonCode::autograd,
                         "a .grad that is the data of another tensor as well");
    if (grad != nullptr && !bound_once.insert(grad.get()).second)
      interpreter.refuse(ReasonCode::autograd, "one tensor becomes the .grad of two");
    std::vector<graph::Value*> bound = {grad == nullptr ? interpreter.builder().none()
                                                        : read(interpreter, *grad)};
    if (grad != nullptr && is_planted(State::grad, Mutation::twice))
      bound[0] = op::add(interpreter.builder(), {bound[0], bound[0]});
    if (optional != nullptr) bound.push_back(optional->flag);
    graph::Attributes attributes{{"cell", cell}};
    if (grad != nullptr && grad->strides && !is_contiguous(*grad))
      attributes.set("strides", *grad->strides);
    interpreter.builder().append(op::rebind, bound, std::move(attributes));
  }
}

bool had_grad(const Tensor& tensor) {
  Object grad = Object::steal(speculate::tensor_access().grad_of(tensor.object.get()));
  PyErr_Clear();
  return grad && !grad.is(Py_None);
}

namespace {

constexpr const char* kGradientVaries = "whether a tensor requires a gradient varies";
constexpr const char* kGradientDepends = "whether a tensor requires a gradient depends on it";

bool may_lack_gradient(const Interpreter& interpreter, const Tensor& tensor) {
  return tensor.requires_grad && !tensor.is_leaf && interpreter.gradients_vary;
}

/// Whether a gradient of it would come to a leaf.
ReachedFlags::Reached requirement_of(Interpreter& interpreter, const Tensor& tensor) {
  if (!may_lack_gradient(interpreter, tensor)) return {};
  if (interpreter.recursion().is_building() || !is_current(tensor))
    interpreter.refuse(ReasonCode::autograd, kGradientVaries);
  return ReachedFlags(interpreter, {tensor.value}).of(values_of_leaves(interpreter));
}

}  // namespace

graph::Value* gradient_flag(Interpreter& interpreter, const Tensor& tensor) {
  return requirement_of(interpreter, tensor).flag;
}

bool shows_gradient(Interpreter& interpreter, const Tensor& tensor) {
  const ReachedFlags::Reached requirement = requirement_of(interpreter, tensor);
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

// --- what eager would refuse --------------------------------------------------------------------

namespace {

/// What the node's gradient uses. Composites have no rule yet: all that they might keep.
passes::SavedValues saved_by(const graph::Node& node) {
  if (node.op->vjp != nullptr) return passes::saved_values(node);
  const bool keeps_result = graph::saves_of(*node.op) == graph::Saves::result;
  return {std::vector<bool>(node.inputs.size(), true),
          std::vector<bool>(node.outputs.size(), keeps_result)};
}

}  // namespace

void check_certain(Interpreter& interpreter, const std::vector<graph::Value*>& outputs,
                   const std::vector<graph::Value*>& targets) {
  if (interpreter.scope_nodes.empty()) return;
  using passes::Paths;
  if (passes::reachable(outputs, targets, Paths::any) ==
      passes::reachable(outputs, targets, Paths::certain))
    return;
  for (const graph::Node* node : gradient_nodes(outputs)) {
    auto test = interpreter.scope_nodes.find(node);
    if (test == interpreter.scope_nodes.end()) continue;
    if (passes::reachable(node->outputs, targets, Paths::any) !=
        passes::reachable(node->outputs, targets, Paths::certain))
      throw CannotMerge{test->second, "whether something has a gradient depends on it",
                        /*in_first_round=*/node->op == &op::while_};
  }
  interpreter.refuse(ReasonCode::autograd, "whether something has a gradient depends on a branch");
}

namespace {

/// Whether what `node` saved of the value has been overwritten by another: the value itself, or
/// what it is, or may be, a view of.
bool is_stale(const Interpreter& interpreter, const graph::Node& node, const graph::Value* value) {
  const auto& overwritten = interpreter.history.overwritten;
  while (true) {
    const auto written = overwritten.find(value);
    if (written != overwritten.end()) return written->second != &node;
    const graph::Node* definition = value->definition;
    if (definition == nullptr) return false;
    if (definition->op == &op::opaque &&
        definition->attributes.get_or<bool>("_shares_memory", false))
      return std::ranges::any_of(definition->inputs, [&](const graph::Value* input) {
        return is_stale(interpreter, node, input);
      });
    if (!definition->op->is(graph::Trait::view)) return false;
    value = definition->inputs[0];
  }
}

/// Whether the node wrote its result over its operand, and keeps that for its gradient.
bool saves_its_result(const Interpreter& interpreter, const graph::Node& node) {
  if (graph::saves_of(*node.op) != graph::Saves::result_in_place) return false;
  const auto written = interpreter.history.overwritten.find(node.inputs[0]);
  return written != interpreter.history.overwritten.end() && written->second == &node;
}

}  // namespace

void check_saved_values(Interpreter& interpreter, const std::vector<graph::Value*>& outputs) {
  if (interpreter.history.overwritten.empty()) return;
  for (const graph::Node* node : gradient_nodes(outputs)) {
    if (!node->blocks.empty() || !any_differentiable(interpreter, node->outputs)) continue;
    passes::SavedValues saved = saved_by(*node);
    if (saves_its_result(interpreter, *node)) saved.outputs.assign(node->outputs.size(), true);
    auto stale = [&](const std::vector<graph::Value*>& values, const std::vector<bool>& used) {
      for (size_t i = 0; i < values.size() && i < used.size(); ++i)
        if (used[i] && is_stale(interpreter, *node, values[i])) return true;
      return false;
    };
    if (stale(node->inputs, saved.inputs) || stale(node->outputs, saved.outputs))
      interpreter.refuse(ReasonCode::autograd, cat("a tensor that the gradient of ", node->op->name,
                                                   " needs is changed in place"));
  }
}

std::vector<graph::Value*> append_gradient(Interpreter& interpreter,
                                           const std::vector<graph::Value*>& outputs,
                                           const std::vector<graph::Value*>& seeds,
                                           const std::vector<graph::Value*>& targets,
                                           bool create_graph) {
  std::vector<graph::Value*> inputs = outputs;
  inputs.insert(inputs.end(), seeds.begin(), seeds.end());
  inputs.insert(inputs.end(), targets.begin(), targets.end());
  graph::Attributes attributes;
  attributes.set("outputs", static_cast<int64_t>(outputs.size()));
  attributes.set("targets", static_cast<int64_t>(targets.size()));
  if (create_graph) attributes.set("create_graph", true);
  interpreter.mark(speculate::LineMark::Kind::graph, "gradients of the run");
  return interpreter.builder().append(op::gradient, inputs, std::move(attributes))->outputs;
}

// --- results ------------------------------------------------------------------------------------


bool is_consumed(const Interpreter& interpreter, const std::vector<graph::Value*>& values) {
  return std::ranges::any_of(gradient_nodes(values), [&](const graph::Node* node) {
    return interpreter.history.consumed.contains(node) &&
           graph::saves_of(*node->op) != graph::Saves::nothing;
  });
}

void note_differentiable_result(Interpreter& interpreter, const Tensor& tensor, size_t index) {
  speculate::Generated::DifferentiableResult result;
  result.result = index;
  result.grad_fn_name = grad_fn_name(tensor);
  const std::vector<graph::Value*> values =
      beyond_custom_gradients(interpreter, {tensor.value}, result.consumed);
  result.consumed = result.consumed || is_consumed(interpreter, values);
  if (!result.consumed) check_no_custom_gradient(interpreter, tensor.value);
  interpreter.output().differentiable_results.push_back(std::move(result));
}

}  // namespace janus::frontend
