// See certain.h. For which contents an operator raises is a fact of its block (OpDef::raises).
#include "passes/analysis/certain.h"

#include <algorithm>

#include "graph/constant.h"
#include "graph/op.h"
#include "ops/list.h"
#include "ops/read.h"

namespace janus::passes {

using graph::Node;
using graph::Raises;
using graph::Trait;
using graph::Value;

namespace {

bool has_integers(const Value* value) {
  return value->type.is_tensor() && !graph::is_floating(value->type.dtype);
}

bool is_integer(const Value* value) { return value->type.kind == graph::Type::Kind::i64; }

/// The operator that computes the value, be it in a kernel; null: it is given to the graph.
const Node* computed_by(const Value* value) {
  const Node* node = value->definition;
  if (node == nullptr || node->op != &op::fused) return node;
  const auto place = std::ranges::find(node->outputs, value) - node->outputs.begin();
  return node->blocks.front()->results[static_cast<size_t>(place)]->definition;
}

/// A pool's backward pass looks whether the indices lie in the image: those of the forward pass do.
bool has_own_indices(const Node& node) {
  const Node* pool = computed_by(node.inputs[2]);
  return pool != nullptr && pool->op == &op::max_pool2d_with_indices;
}

/// A view, or a part, at a place that is a number of the run: it must lie in the tensor.
bool is_cut_by_number(const Node& node) {
  const bool is_part =
      node.op->is(Trait::view) || graph::raises_of(*node.op) == Raises::outside_part;
  return is_part && std::ranges::any_of(node.inputs, is_integer);
}

/// Random numbers by what the graph has always had: eager has drawn by it.
bool draws_as_before(const Node& node) {
  return node.op->is(Trait::random) && graph::raises_of(*node.op) == Raises::not_for_contents &&
         std::ranges::all_of(node.inputs, [](const Value* input) {
           return input->type.is_tensor() || graph::constant_number(input).has_value();
         });
}

}  // namespace

bool fails_only_for_memory(const Node& node) {
  const Raises raises = graph::raises_of(*node.op);
  if (raises == Raises::own_indices) return has_own_indices(node);
  if (node.op->is(Trait::random) || node.op->is(Trait::may_fail)) return false;
  switch (raises) {
    case Raises::never:
    case Raises::outside_part:
    case Raises::outside_place:  // attributes were looked at
      return !is_cut_by_number(node);
    default:
      break;
  }
  return is_safe_for_elements(*node.op, std::ranges::any_of(node.inputs, has_integers),
                              std::ranges::any_of(node.outputs, has_integers));
}

bool is_safe_for_elements(const graph::OpDef& op, bool integers_in, bool integers_out) {
  if (op.is(Trait::elementwise)) return !integers_in || !integers_out;
  return !integers_in && graph::raises_of(op) == Raises::never_for_floats;
}

bool is_certain(const Node& node) {
  if (node.op->is(Trait::communicates) || node.op->is(Trait::writes_state)) return true;
  if (node.op == &op::fused)
    return std::ranges::none_of(node.blocks.front()->nodes,
                                [](const Node* inner) { return ops::looks_up(*inner); });
  if (node.op == &op::function) return true;  // what calls it is none
  if (!node.blocks.empty() || node.op->number != nullptr) return false;
  switch (node.op->computed_by) {
    case graph::ComputedBy::containers:
    case graph::ComputedBy::heap:
    case graph::ComputedBy::python:
      return false;
    default:
      break;
  }
  if (node.op == &op::constant || node.op == &op::state || node.op == &op::undefined) return true;
  if (node.op == &op::size || node.op == &op::dimension || node.op == &op::call) return false;
  return draws_as_before(node) || fails_only_for_memory(node);
}

const Node* uncertain_behind_communication(const graph::Graph& graph) {
  bool has_begun = false;
  for (const Node* node : graph.body().nodes) {
    if (has_begun && !is_certain(*node)) return node;
    has_begun |= node->op->is(Trait::communicates);
    for (const auto& block : node->blocks) {
      const Node* found = nullptr;
      graph::for_each_node(*block, [&](const Node& each) {
        if (each.op->is(Trait::communicates)) found = &each;
      });
      if (found != nullptr) return found;
    }
  }
  return nullptr;
}

}  // namespace janus::passes
