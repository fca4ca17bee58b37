// See raising.h.
#include "passes/analysis/raising.h"

#include <algorithm>
#include <set>

#include "graph/constant.h"
#include "ops/list.h"
#include "passes/structure/counted_loop.h"

namespace janus::passes {

using graph::Node;
using graph::Value;

namespace {

/// Operators whose operands must lie in a range: positions in a tensor, classes, probabilities.
bool has_range(const graph::OpDef* op) {
  static const std::set<const graph::OpDef*> some = {&op::gather,
                                                     &op::scatter,
                                                     &op::scatter_value,
                                                     &op::scatter_add,
                                                     &op::index_select,
                                                     &op::index_add,
                                                     &op::index,
                                                     &op::index_put,
                                                     &op::embedding,
                                                     &op::one_hot,
                                                     &op::nll_loss_forward,
                                                     &op::nll_loss2d_forward,
                                                     &op::row,
                                                     &op::binary_cross_entropy};
  return some.contains(op);
}

/// Operators that raise where an integer is divided by zero; of Python's numbers, any number.
bool divides(const Node& node) {
  static const std::set<const graph::OpDef*> of_tensors = {&op::div_mode, &op::floor_divide,
                                                           &op::remainder, &op::fmod};
  static const std::set<const graph::OpDef*> of_numbers = {&op::scalar_truediv,
                                                           &op::scalar_floordiv, &op::scalar_mod};
  return of_numbers.contains(node.op) ||
         (of_tensors.contains(node.op) && graph::is_integral(node.output()->type.dtype));
}

/// Functions of Python's numbers that are not defined for all of them. (What only doesn't fit into
/// an i64 is no error of the program's.)
bool has_domain(const Node& node) {
  static const std::set<const graph::OpDef*> some = {
      &op::scalar_int,  &op::scalar_floor, &op::scalar_ceil, &op::scalar_round,
      &op::scalar_sqrt, &op::scalar_exp,   &op::scalar_log,  &op::scalar_sin,
      &op::scalar_cos,  &op::scalar_tan,   &op::python_call};
  return some.contains(node.op) ||
         (node.op == &op::scalar_pow && node.output()->type.kind == graph::Type::Kind::f64);
}

/// Whether it takes out a part at a place that differs from run to run.
bool is_at_number(const Node& node) {
  const char* name = node.op == &op::select ? "index" : node.op == &op::narrow ? "start" : nullptr;
  const auto* place = name == nullptr ? nullptr : node.attributes.find(name);
  const auto* dim = place == nullptr ? nullptr : std::get_if<graph::Dim>(place);
  return dim != nullptr && !dim->is_constant();
}

/// A program's list and its length may not fit together. (Frames are in lists of our own.)
bool takes_an_element(const Node& node) {
  return (node.op == &op::list_item || node.op == &op::list_pop) &&
         std::ranges::none_of(node.outputs, [](const Value* output) {
           return output->type.kind == graph::Type::Kind::frame;
         });
}

bool is_surely_not_zero(const Value* value) {
  const auto number = graph::constant_number(value);
  return number && *number != 0;
}

}  // namespace

bool may_raise(const Node& node) {
  if (node.op == &op::row && is_of_round(node)) return false;
  return has_range(node.op) || has_domain(node) || is_at_number(node) || takes_an_element(node) ||
         (divides(node) && !is_surely_not_zero(node.inputs[1]));
}

}  // namespace janus::passes
