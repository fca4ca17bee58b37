#include "frontend/autograd/gradients.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "frontend/autograd/gradient_nodes.h"
#include "frontend/core/torch_services.h"
#include "frontend/values/restart.h"
#include "graph/functions.h"
#include "ops/list.h"
#include "passes/cleanup/loop_invariant_code_motion.h"
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
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (passes::eager_saves_result(node, i)) saved.outputs[i] = true;
  return saved;
}

/// What the value is, or may be, a view of.
std::span<graph::Value* const> bases_of(const graph::Value* value) {
  const graph::Node* definition = value->definition;
  if (definition == nullptr) return {};
  if (definition->op == &op::opaque && definition->attributes.get_or<bool>("_shares_memory", false))
    return definition->inputs;
  if (definition->op->is(graph::Trait::view)) return std::span(definition->inputs).first(1);
  return {};
}

/// Outside of branches, loops and functions: the tensors that a tensor in one of them may be.
class OutsideOfBlocks {
 public:
  struct Outer {
    const graph::Value* value;
    const graph::Node* decides;  ///< the branch or loop that decides whether it is; null: none does
  };

  explicit OutsideOfBlocks(const std::vector<const graph::Node*>& nodes) {
    for (const graph::Node* node : nodes) {
      if (node->op == &op::if_)
        for (const auto& side : node->blocks) add_results(*side, *node, /*decides=*/node);
      if (node->op == &op::while_) add_loop(*node);
      if (node->op == &op::call)
        for (const graph::Node* function : graph::functions_run_by(*node))
          for (const auto& body : function->blocks) {
            add_parameters(*body, *node);
            add_results(*body, *node, nullptr);
          }
    }
  }

  std::span<const Outer> of(const graph::Value* value) const {
    const auto found = outer_.find(value);
    if (found == outer_.end()) return {};
    return found->second;
  }

 private:
  void add_loop(const graph::Node& loop) {
    const graph::Block& body = *loop.blocks[1];
    add_parameters(body, loop);
    add_results(body, loop, nullptr);
    if (loop.attributes.get_or<int64_t>("minimum", 0) > 0) return;
    for (size_t i = 0; i < loop.outputs.size() && i < loop.inputs.size(); ++i)
      add(loop.inputs[i], loop.outputs[i], &loop);
  }

  void add_parameters(const graph::Block& block, const graph::Node& node) {
    for (size_t i = 0; i < block.parameters.size() && i < node.inputs.size(); ++i)
      outer_[block.parameters[i]].push_back({node.inputs[i], nullptr});
  }

  void add_results(const graph::Block& block, const graph::Node& node, const graph::Node* decides) {
    for (size_t i = 0; i < block.results.size() && i < node.outputs.size(); ++i)
      add(block.results[i], node.outputs[i], decides);
  }

  /// The value, and what it is, or may be, a view of.
  void add(const graph::Value* value, const graph::Value* outer, const graph::Node* decides) {
    outer_[value].push_back({outer, decides});
    for (const graph::Value* base : bases_of(value)) add(base, outer, decides);
  }

  std::unordered_map<const graph::Value*, std::vector<Outer>> outer_;
};

/// Looks whether what a node saved of a value has been overwritten by another: the value itself, or
/// what it is, or may be, a view of.
class StaleValue {
 public:
  StaleValue(const InterpreterState& state, const OutsideOfBlocks& outside, const graph::Node& node)
      : state_(state), outside_(outside), node_(node) {}

  bool is(const graph::Value* value) {
    if (!seen_.insert(value).second) return false;
    const auto& overwritten = state_.history.overwritten;
    const auto written = overwritten.find(value);
    if (written != overwritten.end()) return written->second != &node_;
    for (const auto& outer : outside_.of(value)) {
      if (!is(outer.value)) continue;
      if (decides_ == nullptr) decides_ = outer.decides;
      return true;
    }
    return std::ranges::any_of(bases_of(value), [&](const graph::Value* base) { return is(base); });
  }

  /// The branch or loop that decides whether the value that was found is overwritten; null: none.
  const graph::Node* decides() const { return decides_; }

 private:
  const InterpreterState& state_;
  const OutsideOfBlocks& outside_;
  const graph::Node& node_;
  const graph::Node* decides_ = nullptr;
  std::unordered_set<const graph::Value*> seen_;
};

/// Where a branch or loop decides, it is followed instead of merged.
[[noreturn]] void refuse_stale(Interpreter& interpreter, const graph::Node& node,
                               const graph::Node* decides) {
  const auto test = interpreter.scope_nodes.find(decides);
  if (decides != nullptr && test != interpreter.scope_nodes.end())
    throw CannotMerge{test->second, "it decides whether a tensor that a gradient needs is changed",
                      /*in_first_iteration=*/decides->op == &op::while_};
  interpreter.refuse(ReasonCode::autograd, cat("a tensor that the gradient of ", node.op->name,
                                               " needs is changed in place"));
}

/// Where a branch or loop decides, it is followed instead of merged.
[[noreturn]] void refuse_uncertain(Interpreter& interpreter, const graph::Node* decides) {
  const auto test = interpreter.scope_nodes.find(decides);
  if (test != interpreter.scope_nodes.end())
    throw CannotMerge{test->second, "it decides whether a tensor gets a gradient",
                      /*in_first_iteration=*/decides->op == &op::while_};
  interpreter.refuse(ReasonCode::autograd, "a branch decides whether a tensor gets a gradient");
}

bool is_within(const graph::Value& value, const graph::Node& node) {
  return std::ranges::any_of(node.blocks,
                             [&](const auto& block) { return passes::is_inside(value, *block); });
}

/// Values of other tensors that this one is in some runs: what one side of a branch gives as it is,
/// or what a loop without iterations leaves.
std::vector<const graph::Value*> others_that_it_may_be(const graph::Value* value) {
  const graph::Node* node = value->definition;
  std::vector<const graph::Value*> given, others;
  if (node != nullptr && node->op == &op::if_)
    for (const auto& side : node->blocks) given.push_back(side->results[value->index]);
  const bool may_be_left_out = node != nullptr && node->op == &op::while_ &&
                               node->attributes.get_or<int64_t>("minimum", 0) == 0;
  if (may_be_left_out && value->index < node->inputs.size())
    given.push_back(node->inputs[value->index]);
  for (const graph::Value* each : given) {
    if (!is_within(*each, *node)) others.push_back(each);
    for (const graph::Value* further : others_that_it_may_be(each))
      if (!is_within(*further, *node)) others.push_back(further);
  }
  return others;
}

/// Whether a gradient of the outputs comes to one of the values by another way than that node.
bool is_led_past(const std::vector<graph::Value*>& outputs, const graph::Node& node,
                 const std::vector<const graph::Value*>& values) {
  const auto is_one = [&](const graph::Value* value) {
    return std::ranges::find(values, value) != values.end();
  };
  const auto leads_there = [&](const graph::Value* value) {
    const graph::Node* const by = value->definition;
    if (by == nullptr || by == &node || is_within(*value, node) || !passes::passes_gradient(*by))
      return false;
    return std::ranges::any_of(passes::operands_reached(*value, passes::Paths::any), is_one);
  };
  return std::ranges::any_of(outputs, is_one) ||
         std::ranges::any_of(passes::reached_from(outputs, passes::Paths::any), leads_there);
}

/// Where a target is another tensor in some runs, one gradient is that of both: refuses if that
/// would be a gradient too many, or one that lacks what comes to the other.
void check_targets_apart(Interpreter& interpreter, const std::vector<graph::Value*>& outputs,
                         const std::vector<graph::Value*>& targets) {
  std::vector<const graph::Value*> seen(targets.begin(), targets.end());
  for (const graph::Value* target : targets) {
    const std::vector<const graph::Value*> others = others_that_it_may_be(target);
    if (others.empty()) continue;
    const bool is_given_twice = std::ranges::find_first_of(seen, others) != seen.end();
    if (is_given_twice || is_led_past(outputs, *target->definition, others))
      refuse_uncertain(interpreter, target->definition);
    seen.insert(seen.end(), others.begin(), others.end());
  }
}

}  // namespace

void check_certain(Interpreter& interpreter, const std::vector<graph::Value*>& outputs,
                   const std::vector<graph::Value*>& targets) {
  if (interpreter.scope_nodes.empty()) return;
  check_targets_apart(interpreter, outputs, targets);
  using passes::Paths;
  if (passes::reachable(outputs, targets, Paths::any) ==
      passes::reachable(outputs, targets, Paths::certain))
    return;
  for (const graph::Node* node : gradient_nodes(outputs)) {
    if (!interpreter.scope_nodes.contains(node)) continue;
    if (passes::reachable(node->outputs, targets, Paths::any) !=
        passes::reachable(node->outputs, targets, Paths::certain))
      refuse_uncertain(interpreter, node);
  }
  refuse_uncertain(interpreter, nullptr);
}

void check_saved_values(Interpreter& interpreter, const std::vector<graph::Value*>& outputs) {
  if (interpreter.history.overwritten.empty()) return;
  const std::vector<const graph::Node*> nodes = gradient_nodes(outputs);
  const OutsideOfBlocks outside(nodes);
  for (const graph::Node* node : nodes) {
    if (!node->blocks.empty() || !any_differentiable(interpreter, node->outputs)) continue;
    const passes::SavedValues saved = saved_by(*node);
    StaleValue stale(interpreter, outside, *node);
    const auto any_stale = [&](const std::vector<graph::Value*>& values,
                               const std::vector<bool>& used) {
      for (size_t i = 0; i < values.size() && i < used.size(); ++i)
        if (used[i] && stale.is(values[i])) return true;
      return false;
    };
    if (any_stale(node->inputs, saved.inputs) || any_stale(node->outputs, saved.outputs))
      refuse_stale(interpreter, *node, stale.decides());
  }
}

void check_all_results_used(Interpreter& interpreter, const std::vector<graph::Value*>& outputs) {
  for (const graph::Node* node : gradient_nodes(outputs)) {
    if (node->op != &op::opaque) continue;
    const auto name = node->attributes.get<std::string>("operator");
    if (!torch_services().facts(name).gives_apart) continue;
    const passes::Reached reached = passes::reached_from(outputs, passes::Paths::certain);
    for (graph::Value* result : node->outputs)
      if (passes::carries_gradient(result->type) && !reached.contains(result))
        interpreter.refuse(ReasonCode::autograd,
                           "a gradient that only some results of an operator lead to");
  }
}

std::vector<graph::Value*> append_gradient(Interpreter& interpreter,
                                           const std::vector<graph::Value*>& outputs,
                                           const std::vector<graph::Value*>& seeds,
                                           const std::vector<graph::Value*>& targets,
                                           bool create_graph) {
  check_all_results_used(interpreter, outputs);
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
