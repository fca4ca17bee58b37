// See uniform_values.h.
#include "passes/batching/uniform_values.h"

#include <algorithm>

#include "graph/functions.h"
#include "graph/op.h"
#include "ops/list.h"
#include "passes/structure/captures.h"

namespace janus::passes {

using graph::Block;
using graph::body_of;
using graph::Node;
using graph::Trait;
using graph::Value;

namespace {

bool computes(const Node& node) {
  return node.op->is(Trait::pure) && !node.op->is(Trait::random) &&
         !node.op->is(Trait::reads_heap) && node.blocks.empty();
}

/// A part of which programs take rows in their turn: it is a view at once, as rows of rows have
/// no form for many.
bool is_part(const Node& node) { return node.op == &op::row && node.output()->type.rank() > 1; }

bool costs_little(const Node& node) {
  return node.op->is(Trait::view) || std::ranges::none_of(node.inputs, [](const Value* input) {
           return input->type.is_tensor();
         });
}

}  // namespace

UniformValues::UniformValues(const Block& body, std::vector<Node*> functions,
                             const std::vector<Node*>& once)
    : body_(body), functions_(std::move(functions)) {
  for (const Node* function : once) once_.insert(&body_of(*function));
  for (const Node* function : functions_)
    graph::for_each_node(body_of(*function), [&](const Node& node) {
      for (const Value* input : node.inputs) uses_[input] += once_.contains(node.parent) ? 1 : 2;
    });
}

bool UniformValues::contains(const Value* value) {
  const auto [known, is_new] = known_.try_emplace(value, false);
  if (!is_new) return known->second;
  const bool uniform = is_uniform(*value);
  return known_[value] = uniform;
}

bool UniformValues::is_there(const Value* value) {
  if (is_of_one(*value)) return true;
  const Node* node = value->definition;
  if (node == nullptr || contains(value)) return false;
  const bool runs_once = once_.contains(node->parent) && computes(*node);
  return (runs_once || is_part(*node)) &&
         std::ranges::all_of(node->inputs, [&](const Value* input) {
           return contains(input) || is_there(input) || !input->type.is_tensor();
         });
}

bool UniformValues::is_inside(const Value* value) const {
  return value->definition != nullptr ? value->definition->parent != &body_
                                      : value->owner != &body_;
}

/// A tensor of the body that one node has, which runs once.
bool UniformValues::is_of_one(const Value& value) const {
  const auto uses = uses_.find(&value);
  return value.type.is_tensor() && !is_inside(&value) && uses != uses_.end() && uses->second == 1;
}

/// What `functions` gave to the body differs from the body's other values: they are called in
/// parts (outlining.h), which take from each other what an invocation takes from others.
bool UniformValues::is_uniform(const Value& value) {
  const Node* node = value.definition;
  if (is_of_one(value)) return false;
  if (node == nullptr) return !is_inside(&value);
  if (!is_inside(&value)) {
    if (node->op == &op::call) return !std::ranges::count(functions_, graph::callee(*node));
    return std::ranges::all_of(operands(*node),
                               [&](const Value* input) { return contains(input); });
  }
  return computes(*node) && (!once_.contains(node->parent) || costs_little(*node)) &&
         std::ranges::all_of(node->inputs, [&](const Value* input) { return contains(input); });
}

std::vector<bool> varying_operands(const Node& node, UniformValues& uniform) {
  std::vector<bool> result;
  for (const Value* input : node.inputs) result.push_back(!uniform.contains(input));
  return result;
}

}  // namespace janus::passes
