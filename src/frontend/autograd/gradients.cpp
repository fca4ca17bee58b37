#include "frontend/autograd/gradients.h"

#include <algorithm>

#include "frontend/autograd/gradient_nodes.h"
#include "frontend/values/restart.h"
#include "graph/functions.h"
#include "ops/list.h"
#include "passes/gradient/reachable.h"
#include "passes/gradient/saved_values.h"
#include "passes/reach/reachability.h"

namespace janus::frontend {

namespace {

/// What the node's gradient uses, and eager's keeps. Composites have no rule yet: all that they
/// might keep.
passes::SavedValues saved_by(const graph::Node& node) {
  passes::SavedValues saved;
  if (node.op->vjp != nullptr)
    saved = passes::saved_values(node);
  else
    saved = {std::vector<bool>(node.inputs.size(), true),
             std::vector<bool>(node.outputs.size(), false)};
  const auto flags = node.attributes.get_or<std::vector<bool>>("_saves_results", {});
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (graph::saves_of(*node.op) == graph::Saves::result || (i < flags.size() && flags[i]))
      saved.outputs[i] = true;
  return saved;
}

/// Whether what `node` saved of the value has been overwritten by another: the value itself, or
/// what it is, or may be, a view of.
bool is_stale(const InterpreterState& state, const graph::Node& node, const graph::Value* value) {
  const auto& overwritten = state.history.overwritten;
  while (true) {
    const auto written = overwritten.find(value);
    if (written != overwritten.end()) return written->second != &node;
    const graph::Node* definition = value->definition;
    if (definition == nullptr) return false;
    if (definition->op == &op::opaque &&
        definition->attributes.get_or<bool>("_shares_memory", false))
      return std::ranges::any_of(definition->inputs, [&](const graph::Value* input) {
        return is_stale(state, node, input);
      });
    if (!definition->op->is(graph::Trait::view)) return false;
    value = definition->inputs[0];
  }
}

/// Whether the node wrote its result over its operand, and keeps that for its gradient.
bool saves_its_result(const InterpreterState& state, const graph::Node& node) {
  if (graph::saves_of(*node.op) != graph::Saves::result_in_place) return false;
  const auto written = state.history.overwritten.find(node.inputs[0]);
  return written != state.history.overwritten.end() && written->second == &node;
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
      throw CannotMerge{test->second, "it decides whether a tensor gets a gradient",
                        /*in_first_iteration=*/node->op == &op::while_};
  }
  interpreter.refuse(ReasonCode::autograd, "a branch decides whether a tensor gets a gradient");
}

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

}  // namespace janus::frontend
