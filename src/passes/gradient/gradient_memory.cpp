// See gradient_memory.h.
#include "passes/gradient/gradient_memory.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "graph/builder.h"
#include "ops/list.h"
#include "passes/gradient/differentiate.h"
#include "passes/lowering/decompose.h"
#include "passes/reach/reachability.h"
#include "passes/structure/graph_of_node.h"

namespace janus::passes {

using graph::Node;
using graph::Shape;
using graph::Value;

namespace {

/// Whether an expanded tensor has elements that are one in memory.
bool repeats(const Shape& from, const Shape& to) {
  const size_t leading = to.size() - from.size();
  for (size_t i = 0; i < to.size(); ++i)
    if (!to[i].is(1) && (i < leading || !(from[i - leading] == to[i]))) return true;
  return false;
}

/// Not what eager's rule leaves out: steps that give all of a tensor as it is.
bool is_view_in_eager(const Node& node) {
  using graph::Sees;
  const Sees sees = node.op->sees;
  if (sees == Sees::all || sees == Sees::in_order) return false;
  return sees != Sees::expanded || node.output()->type != node.inputs[0]->type;
}

/// What a gradient rule gives: the gradient of one of the node's results, or what is computed.
struct Rule {
  bool is_known = true;
  std::optional<size_t> result = std::nullopt;
  bool is_spread = false;
  bool is_view = false;

  bool is_new() const { return is_known && !result && !is_spread; }
};

/// Whether a node whose rule nobody knows may sum that value up: then one element of the gradient
/// is that of all places.
bool may_be_summed(const Node& node, const Value& value) {
  return std::ranges::any_of(node.outputs, [&](const Value* output) {
    return carries_gradient(output->type) && output->type.rank() < value.type.rank();
  });
}

Rule unknown_rule(const Node& node, size_t operand) {
  return {.is_known = false, .is_spread = may_be_summed(node, *node.inputs[operand])};
}

/// Whether eager hands the gradient on where the node turns out to change nothing.
bool may_change_nothing(const Node& node, size_t operand) {
  if (node.output()->type != node.inputs[operand]->type) return false;
  return node.op == &op::repeat || node.op == &op::tile || node.op == &op::cumsum ||
         node.op->is(graph::Trait::view);
}

/// The rule for the gradient of that operand, of the node by itself.
Rule expanded_rule(const Node& node, size_t operand) {
  graph::Graph graph = graph_of(node);
  graph::Builder builder(graph);
  const Node& copy = *graph.results().front()->definition;
  std::vector<Value*> outputs, seeds;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < copy.outputs.size(); ++i) {
    if (!carries_gradient(copy.outputs[i]->type)) continue;
    numbers.push_back(i);
    outputs.push_back(copy.outputs[i]);
    seeds.push_back(builder.input(outputs.back()->type, "seed"));
  }
  Value* const target = copy.inputs[operand];
  const auto count = static_cast<int64_t>(outputs.size());
  outputs.insert(outputs.end(), seeds.begin(), seeds.end());
  outputs.push_back(target);
  graph.body().results = {builder
                              .append_unchecked(op::gradient, outputs,
                                                {{"outputs", count}, {"targets", int64_t{1}}},
                                                {target->type})
                              ->output()};
  const size_t first_seed = graph.inputs().size() - seeds.size();
  const graph::Graph expanded = differentiate(decompose(graph));
  const bool is_view = node.op->is(graph::Trait::view) && is_view_in_eager(node);
  Rule rule{.is_view = is_view};
  const Value* value = expanded.results().front();
  while (value->definition != nullptr && value->definition->op->is(graph::Trait::view)) {
    const Value* const from = value->definition->inputs[0];
    rule.is_view |= is_view_in_eager(*value->definition);
    if (value->definition->op == &op::expand)
      rule.is_spread |= repeats(from->type.shape, value->type.shape);
    value = from;
  }
  const auto found = std::ranges::find(expanded.inputs().subspan(first_seed), value);
  if (found == expanded.inputs().end() && may_change_nothing(node, operand)) rule.is_known = false;
  if (found != expanded.inputs().end())
    rule.result = numbers[static_cast<size_t>(found - expanded.inputs().begin()) - first_seed];
  return rule;
}

Rule rule_of(const Node& node, size_t operand) {
  if (!node.blocks.empty() || node.op == &op::opaque || node.op == &op::call ||
      node.op == &op::gradient)
    return unknown_rule(node, operand);
  try {
    return expanded_rule(node, operand);
  } catch (const graph::TypeError&) {
    return unknown_rule(node, operand);
  }
}

/// The gradient of a value that the blocks of the node use, which may be an operand too: new if all
/// that uses it there makes a new one.
Rule rule_within(const Node& node, const Value* value) {
  std::vector<const Value*> same = {value};
  for (const auto& block : node.blocks) {
    const auto& parameters = block->parameters;
    for (size_t i = 0; i < parameters.size() && i < node.inputs.size(); ++i)
      if (node.inputs[i] == value) same.push_back(parameters[i]);
  }
  const bool may_be_left_out = node.op == &op::while_ && same.size() > 1 &&
                               node.attributes.get_or<int64_t>("minimum", 0) == 0;
  const auto is_it = [&](const Value* other) {
    return std::ranges::find(same, other) != same.end();
  };
  const auto makes_new = [&](const Node& inner) {
    for (size_t i = 0; i < inner.inputs.size(); ++i)
      if (is_it(inner.inputs[i]) && inner.blocks.empty() && !rule_of(inner, i).is_new())
        return false;
    return inner.blocks.empty() || std::ranges::all_of(same, [&](const Value* each) {
             return rule_within(inner, each).is_new();
           });
  };
  const auto makes_all_new = [&](const auto& block) {
    return std::ranges::none_of(block->results, is_it) &&
           std::ranges::all_of(block->nodes, [&](const Node* inner) { return makes_new(*inner); });
  };
  if (!may_be_left_out && std::ranges::all_of(node.blocks, makes_all_new)) return {};
  return {.is_known = false, .is_spread = may_be_summed(node, *value)};
}

/// The gradients of outputs, from their seeds to what they lead to.
class Gradients {
 public:
  explicit Gradients(std::span<Value* const> outputs)
      : outputs_(outputs), certain_(reached_from(outputs, Paths::certain)) {
    for (const Value* value : reached_from(outputs, Paths::any)) {
      if (value->definition == nullptr || !passes_gradient(*value->definition)) continue;
      for (const Value* operand : operands_reached(*value, Paths::any))
        users_[operand].insert(value->definition);
    }
  }

  GradientMemory memory_of(const Value* value) const {
    GradientMemory memory{.of = value};
    while (true) {
      const std::vector<Term> terms = terms_of(memory.of);
      if (std::ranges::all_of(terms, [](const Term& term) { return term.rule.is_new(); }))
        return memory;
      if (terms.size() > 1) {  // their sum is new, if there is more than one
        memory.is_known = std::ranges::all_of(terms, &Term::is_certain);
        if (!memory.is_known) memory.is_spread |= any_may_be_spread(terms);
        return memory;
      }
      const Term& only = terms.front();
      memory.is_known = only.rule.is_known;
      if (!memory.is_known) memory.lost_in = only.node;
      const bool is_spread = memory.is_known ? only.rule.is_spread : any_may_be_spread(terms);
      memory.is_spread |= is_spread;
      memory.is_part_of_spread |= is_spread && !memory.parts.empty();
      memory.is_view |= only.rule.is_view;
      if (only.node == nullptr) memory.output = only.rule.result;
      if (only.node == nullptr || !only.rule.result) return memory;
      if (only.node->op == &op::cat || only.node->op == &op::stack)
        memory.parts.emplace_back(only.node, only.operand);
      memory.of = only.node->outputs[*only.rule.result];
    }
  }

 private:
  /// Of the sum that a gradient is: what comes from an output's seed, or from a node.
  struct Term {
    const Node* node = nullptr;
    size_t operand = 0;
    Rule rule;
    bool is_certain = true;
  };

  /// Whether one of the terms may be one element seen many times, if it is handed on alone.
  bool any_may_be_spread(const std::vector<Term>& terms) const {
    return std::ranges::any_of(terms, [&](const Term& term) {
      if (term.rule.is_spread || term.node == nullptr) return term.rule.is_spread;
      const std::vector<Value*>& results = term.node->outputs;
      if (term.rule.is_known) return term.rule.result && is_spread(results[*term.rule.result]);
      return std::ranges::any_of(results, [&](const Value* result) {
        return carries_gradient(result->type) && is_spread(result);
      });
    });
  }

  bool is_spread(const Value* value) const {
    if (const auto known = spread_.find(value); known != spread_.end()) return known->second;
    return spread_[value] = memory_of(value).is_spread;
  }

  std::vector<Term> terms_of(const Value* value) const {
    std::vector<Term> terms;
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (outputs_[i] == value) terms.push_back({.rule = {.result = i}});
    const auto users = users_.find(value);
    if (users == users_.end()) return terms;
    for (const Node* node : users->second) {
      const bool is_certain = std::ranges::any_of(
          node->outputs, [&](Value* output) { return certain_.contains(output); });
      if (!node->blocks.empty()) {
        terms.push_back({node, 0, rule_within(*node, value), is_certain});
        continue;
      }
      for (size_t i = 0; i < node->inputs.size(); ++i)
        if (node->inputs[i] == value) terms.push_back({node, i, rule_of(*node, i), is_certain});
    }
    return terms;
  }

  const std::span<Value* const> outputs_;
  const Reached certain_;
  std::unordered_map<const Value*, std::unordered_set<const Node*>> users_;
  mutable std::unordered_map<const Value*, bool> spread_;  ///< is_spread(), as far as it was asked
};

}  // namespace

std::vector<GradientMemory> memory_of_gradients(std::span<Value* const> outputs,
                                                std::span<Value* const> targets) {
  const Gradients gradients(outputs);
  std::vector<GradientMemory> memories;
  for (const Value* target : targets) memories.push_back(gradients.memory_of(target));
  return memories;
}

bool are_apart(const GradientMemory& one, const GradientMemory& other) {
  if (one.is_part_of_spread && other.is_part_of_spread) return false;
  return std::ranges::any_of(one.parts, [&](const auto& part) {
    return std::ranges::any_of(other.parts, [&](const auto& otherwise) {
      return part.first == otherwise.first && part.second != otherwise.second;
    });
  });
}

}  // namespace janus::passes
