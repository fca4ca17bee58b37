// See simplify.h.
#include "passes/cleanup/simplify.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "graph/constant.h"
#include "graph/element_code.h"
#include "graph/rewriter.h"
#include "ops/list.h"
#include "ops/shape.h"
#include "passes/analysis/escaping.h"

namespace janus::passes {
namespace {

using graph::DType;
using graph::Node;
using graph::OpDef;
using graph::Value;

/// A node whose operands are already rewritten.
struct Site {
  graph::Builder& builder;
  const Node& node;                ///< in the old graph: operator, attributes, result type
  std::span<Value* const> inputs;  ///< in the new graph

  Value* input() const { return inputs.front(); }
  const graph::Type& type() const { return node.output()->type; }
};

/// The new value of the node's result, or null if the rule does not apply.
using Rule = Value* (*)(const Site&);

const Node* defined_by(const Value* value, const OpDef& op) {
  return value->definition != nullptr && value->definition->op == &op ? value->definition : nullptr;
}

bool is_one_of(const OpDef* op, std::initializer_list<const OpDef*> ops) {
  return std::ranges::find(ops, op) != ops.end();
}

// ---- Nodes that change nothing ------------------------------------------------------------------

Value* give_operand(const Site& site) {
  return site.input()->type == site.type() ? site.input() : nullptr;
}

// ---- Reshapes -----------------------------------------------------------------------------------

/// Same elements in the same order under another shape.
bool is_reshape(const OpDef* op) {
  using graph::Sees;
  return op->sees == Sees::reshaped || op->sees == Sees::viewed || op->sees == Sees::squeezed ||
         op->sees == Sees::unsqueezed;
}

Value* join_reshapes(const Site& site) {
  const Node* inner = site.input()->definition;
  if (inner == nullptr || !is_reshape(inner->op)) return nullptr;
  Value* base = inner->inputs.front();
  if (base->type == site.type()) return base;
  // A size of -1 stays: nothing has to be known for it.
  const bool has_shape = site.node.op == &op::reshape;
  return op::reshape(
      site.builder, {base},
      {{"shape", has_shape ? site.node.attributes.get<graph::Shape>("shape") : site.type().shape}});
}

/// What the operand was a copy for may be gone: only `reshape` takes every layout.
Value* take_any_layout(const Site& site) {
  return op::reshape(site.builder, {site.input()}, {{"shape", site.type().shape}});
}

// ---- Permutations -------------------------------------------------------------------------------

using ops::Permutation;
using ops::permutation_of;

Value* join_permutations(const Site& site) {
  const size_t rank = site.type().shape.size();
  const auto outer = permutation_of(site.node.op, site.node.attributes, rank);
  if (!outer) return nullptr;
  Value* base = site.input();
  Permutation total = *outer;
  if (const Node* inner = base->definition; inner != nullptr) {
    if (const auto first = permutation_of(inner->op, inner->attributes, rank)) {
      for (size_t& dim : total) dim = (*first)[dim];
      base = inner->inputs.front();
    }
  }
  if (std::ranges::is_sorted(total)) return base;
  if (base == site.input()) return nullptr;
  graph::Shape dims;
  for (const size_t dim : total) dims.emplace_back(static_cast<int64_t>(dim));
  return op::permute(site.builder, {base}, {{"dims", dims}});
}

// ---- Conversions --------------------------------------------------------------------------------

/// Whether every value of `from` has an exact counterpart in `to`, so that converting on from there
/// gives what converting directly gives.
bool is_exact(DType from, DType to) {
  if (from == to || from == DType::b1) return true;
  if (graph::is_floating(from) && graph::is_floating(to))
    return graph::byte_size(from) < graph::byte_size(to);
  const bool to_signed = graph::is_integral(to) && to != DType::u8;
  return graph::is_integral(from) && to_signed && graph::byte_size(from) < graph::byte_size(to);
}

Value* join_conversions(const Site& site) {
  const Node* inner = defined_by(site.input(), op::to);
  if (inner == nullptr) return nullptr;
  Value* base = inner->inputs.front();
  if (!is_exact(base->type.dtype, inner->output()->type.dtype)) return nullptr;
  if (base->type == site.type()) return base;
  return op::to(site.builder, {base}, site.node.attributes);
}

// ---- Elementwise --------------------------------------------------------------------------------

Value* cancel_double_negation(const Site& site) {
  const Node* inner = defined_by(site.input(), op::neg);
  return inner == nullptr ? nullptr : inner->inputs.front();
}

/// A condition for each element decides how the result lies, which a program may see.
Value* drop_choice_of_equals(const Site& site) {
  const bool one_for_all = site.input()->type.shape.empty();
  const bool equal = site.inputs[1] == site.inputs[2] && site.inputs[1]->type == site.type();
  return one_for_all && equal ? site.inputs[1] : nullptr;
}

bool all_tensors_have_dtype(std::span<Value* const> values, DType dtype) {
  return std::ranges::all_of(values, [&](const Value* value) {
    return !value->type.is_tensor() || value->type.dtype == dtype;
  });
}

bool gives(const OpDef& op, std::span<Value* const> inputs, const graph::Attributes& attributes,
           const graph::Type& type) {
  try {
    return infer_results(op, inputs, attributes) == std::vector{type};
  } catch (const graph::TypeError&) {
    return false;
  }
}

/// An operand that was expanded is read as it was before, if the others still make up the shape.
/// (With several dtypes the rank takes part in the choice of the result's: left alone.)
Value* broadcast_by_itself(const Site& site) {
  std::vector<Value*> inputs(site.inputs.begin(), site.inputs.end());
  bool changed = false;
  for (Value*& input : inputs) {
    const Node* expand = defined_by(input, op::expand);
    if (expand == nullptr || !all_tensors_have_dtype(inputs, input->type.dtype)) continue;
    Value* expanded = std::exchange(input, expand->inputs.front());
    if (gives(*site.node.op, inputs, site.node.attributes, site.type()))
      changed = true;
    else
      input = expanded;
  }
  if (!changed) return nullptr;
  return site.builder.append_unchecked(*site.node.op, inputs, site.node.attributes, {site.type()})
      ->output();
}

/// Of a lone operand that was expanded each element is computed once: the result is a view.
Value* compute_before_expanding(const Site& site) {
  const bool goes_by_place = site.node.op == &op::position;
  if (!site.node.op->is(graph::Trait::elementwise) || goes_by_place) return nullptr;
  std::vector<Value*> inputs(site.inputs.begin(), site.inputs.end());
  const auto is_tensor = [](const Value* input) { return input->type.is_tensor(); };
  const auto lone = std::ranges::find_if(inputs, is_tensor);
  if (lone == inputs.end() || std::any_of(lone + 1, inputs.end(), is_tensor)) return nullptr;
  const Node* expand = defined_by(*lone, op::expand);
  if (expand == nullptr || (*lone)->type.shape != site.type().shape) return nullptr;
  *lone = expand->inputs.front();
  const auto type = graph::Type::tensor(site.type().dtype, (*lone)->type.shape);
  if (!gives(*site.node.op, inputs, site.node.attributes, type)) return nullptr;
  Value* computed =
      site.builder.append_unchecked(*site.node.op, inputs, site.node.attributes, {type})->output();
  return op::expand(site.builder, {computed}, {{"size", site.type().shape}});
}

// ---- Tensors whose elements are all one known number --------------------------------------------

/// The number that fills a tensor made by `full`, also if it was reshaped or expanded since.
std::optional<double> filling(const Value* value) {
  const Node* node = value->definition;
  while (node != nullptr && (is_reshape(node->op) || node->op == &op::expand))
    node = node->inputs.front()->definition;
  if (node == nullptr || node->op != &op::full) return std::nullopt;
  return graph::constant_number(node->inputs.front());
}

/// Whether a tensor of `dtype` holds the number as it is.
bool is_held_exactly(double number, DType dtype) {
  if (dtype == DType::f64) return true;
  if (dtype == DType::f32) return static_cast<double>(static_cast<float>(number)) == number;
  return std::abs(number) <= 128 && std::trunc(number) == number;
}

/// A filled operand becomes a number, if the others still make up dtype and shape.
Value* use_number_for_filled(const Site& site) {
  if (!all_tensors_have_dtype(site.inputs, site.type().dtype)) return nullptr;
  for (size_t i = 0; i < site.inputs.size(); ++i) {
    if (!site.inputs[i]->type.is_tensor()) continue;
    const auto number = filling(site.inputs[i]);
    if (!number || !graph::is_floating(site.type().dtype) ||
        !is_held_exactly(*number, site.type().dtype))
      continue;
    std::vector<Value*> inputs(site.inputs.begin(), site.inputs.end());
    inputs[i] = site.builder.constant(*number);
    if (gives(*site.node.op, inputs, site.node.attributes, site.type()))
      return site.builder
          .append_unchecked(*site.node.op, inputs, site.node.attributes, {site.type()})
          ->output();
  }
  return nullptr;
}

/// Exact arithmetic of filled tensors and numbers is done now: the start of each backward run.
Value* compute_filled(const Site& site) {
  if (!is_one_of(site.node.op, {&op::add, &op::sub, &op::mul, &op::div, &op::neg})) return nullptr;
  const DType dtype = site.type().dtype;
  if (dtype != DType::f32 && dtype != DType::f64) return nullptr;
  std::vector<graph::TypedNumber> operands;
  for (const Value* input : site.inputs) {
    const bool is_tensor = input->type.is_tensor();
    const auto number = is_tensor ? filling(input) : graph::constant_number(input);
    if (!number || (is_tensor && input->type.dtype != dtype)) return nullptr;
    // Numbers take the tensors' precision in arithmetic.
    operands.push_back({graph::rounded(graph::Number::of(*number, dtype), dtype), dtype});
  }
  const graph::Number result = graph::ElementCode(site.node, dtype, false).run(operands, dtype);
  return op::full(site.builder, {site.builder.constant(result.as_double(dtype))},
                  {{"size", site.type().shape}, {"dtype", dtype}});
}

// ---- Order in memory ----------------------------------------------------------------------------

/// Whether the value is a tensor of its own whose elements surely lie in order.
bool lies_in_order(const Value* value) {
  const Node* node = value->definition;
  if (node == nullptr) return false;
  if (node->op == &op::if_)
    return std::ranges::all_of(
        node->blocks, [&](const auto& side) { return lies_in_order(side->results[value->index]); });
  if (node->op == &op::while_)
    return lies_in_order(node->inputs[value->index]) &&
           lies_in_order(node->blocks[1]->results[value->index]);
  if (value->index > 0) return false;
  if (node->op->is(graph::Trait::product) ||
      is_one_of(node->op, {&op::full, &op::zeros, &op::embedding_dense_backward, &op::contiguous}))
    return true;
  return node->op->is(graph::Trait::elementwise) &&
         std::ranges::all_of(node->inputs, [&](const Value* input) {
           return !input->type.is_tensor() || input->type.rank() == 0 ||
                  (input->type.shape == value->type.shape && lies_in_order(input));
         });
}

Value* keep_order(const Site& site) { return lies_in_order(site.input()) ? site.input() : nullptr; }

/// A transposed product in order is the product of the transposed operands.
Value* transpose_operands(const Site& site) {
  const Node* transposed = site.input()->definition;
  if (transposed == nullptr || transposed->inputs.empty()) return nullptr;
  const Node* product = defined_by(transposed->inputs.front(), op::mm);
  if (product == nullptr) return nullptr;
  const auto permutation = permutation_of(transposed->op, transposed->attributes, 2);
  if (!permutation || *permutation != Permutation{1, 0}) return nullptr;
  const auto turned = [&](Value* matrix) {
    return op::transpose(site.builder, {matrix}, {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}});
  };
  return op::mm(site.builder, {turned(product->inputs[1]), turned(product->inputs[0])});
}

// ---- The rules together -------------------------------------------------------------------------

std::span<const Rule> rules_for(const OpDef& op) {
  static const std::unordered_map<const OpDef*, std::vector<Rule>> rules = {
      {&op::detach, {give_operand}},
      {&op::clone, {give_operand}},
      {&op::contiguous, {keep_order, transpose_operands}},
      {&op::reshape, {give_operand, join_reshapes}},
      {&op::view, {give_operand, join_reshapes, take_any_layout}},
      {&op::flatten, {give_operand, join_reshapes}},
      {&op::view_as, {give_operand, join_reshapes, take_any_layout}},
      {&op::reshape_as, {give_operand, join_reshapes}},
      {&op::unflatten, {give_operand, join_reshapes}},
      {&op::unsqueeze, {join_reshapes}},
      {&op::squeeze, {give_operand, join_reshapes}},
      {&op::squeeze_all, {give_operand, join_reshapes}},
      {&op::expand, {give_operand}},
      {&op::transpose, {join_permutations}},
      {&op::t, {join_permutations}},
      {&op::matrix_transpose, {join_permutations}},
      {&op::permute, {join_permutations}},
      {&op::to, {give_operand, join_conversions}},
      {&op::neg, {cancel_double_negation}},
      {&op::where, {drop_choice_of_equals}},
  };
  const auto found = rules.find(&op);
  return found == rules.end() ? std::span<const Rule>() : found->second;
}

/// May give an operand, or a view of one: not for tensors that leave the graph.
Value* simplified(const Site& site) {
  for (const Rule rule : rules_for(*site.node.op))
    if (Value* value = rule(site)) return value;
  return compute_before_expanding(site);
}

/// Always gives a tensor of its own, as the node did.
Value* simplified_elementwise(const Site& site) {
  if (!site.node.op->is(graph::Trait::elementwise)) return nullptr;
  for (const Rule rule : {compute_filled, use_number_for_filled, broadcast_by_itself})
    if (Value* value = rule(site)) return value;
  return nullptr;
}

/// A detach, or a tensor laid in order, that nobody can tell from its operand.
bool is_idle(const Node& node, const Escaping& escaping) {
  return (node.op == &op::detach || node.op == &op::contiguous) && escaping.only_through(node);
}

}  // namespace

graph::Graph simplify(const graph::Graph& graph) {
  const Escaping escaping(graph);
  graph::Rewriter rewriter(graph);
  rewriter.run([&](const Node& node) {
    TORCHJANUS_CHECK(node.op != &op::gradient, "simplify: the graph is not differentiated yet");
    if (node.outputs.size() != 1) return false;
    const std::vector<Value*> inputs = rewriter[node.inputs];
    const Site site{rewriter.builder(), node, inputs};
    const bool may_be_shared = !escaping.contains(node.output());
    Value* value = may_be_shared || is_idle(node, escaping) ? simplified(site) : nullptr;
    if (value == nullptr) value = simplified_elementwise(site);
    if (value == nullptr) return false;
    TORCHJANUS_CHECK(value->type == node.output()->type, node.op->name, ": simplified ",
                     node.output()->type, " to ", value->type);
    rewriter.replace(node, {value});
    return true;
  });
  return rewriter.finish();
}

}  // namespace janus::passes
