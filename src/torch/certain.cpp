// See certain.h.
#include "torch/certain.h"

#include <algorithm>
#include <set>

#include "graph/op.h"
#include "ops/list.h"

namespace janus::torch {

using graph::Node;
using graph::Value;

namespace {

/// Operators that compute sums with floats: any bits are good.
bool is_arithmetic(const graph::OpDef* op) {
  static const std::set<const graph::OpDef*> some = {
      &op::dot,
      &op::convolution,
      &op::sum,
      &op::mean,
      &op::amax,
      &op::amin,
      &op::vector_norm,
      &op::cumsum,
      &op::avg_pool2d,
      &op::avg_pool2d_backward,
      &op::convolution_backward,
      &op::max_pool2d_with_indices,
      &op::batch_norm_train,
      &op::batch_norm_backward,
      &op::native_layer_norm,
      &op::native_layer_norm_backward,
      &op::softmax_native,
      &op::softmax_backward_data,
      &op::log_softmax_native,
      &op::log_softmax_backward_data,
      &op::adaptive_avg_pool2d_native,
      &op::adaptive_avg_pool2d_backward,
  };
  return op->is(graph::Trait::product) || some.contains(op);
}

/// Operators that move elements of whatever type, by numbers that are no operands.
bool moves_elements(const graph::OpDef* op) {
  static const std::set<const graph::OpDef*> some = {
      &op::contiguous,
      &op::clone,
      &op::cat,
      &op::stack,
      &op::flip,
      &op::tril,
      &op::triu,
      &op::constant_pad_nd,
      &op::select_backward,
      &op::slice_backward,
      &op::select_scatter,
      &op::slice_scatter,
      &op::zeros,
      &op::ones,
      &op::full,
      &op::zeros_like,
      &op::ones_like,
      &op::full_like,
      &op::fill,
      &op::zero,
      &op::copy,
  };
  return op->is(graph::Trait::view) || some.contains(op);
}

bool has_integers(const Value* value) {
  return value->type.is_tensor() && !graph::is_floating(value->type.dtype);
}

bool is_integer(const Value* value) { return value->type.kind == graph::Type::Kind::i64; }

/// A pool's backward pass looks whether the indices lie in the image: those of the forward pass do.
bool has_own_indices(const Node& node) {
  const Value* indices = node.inputs[2];
  return indices->definition != nullptr && indices->definition->op == &op::max_pool2d_with_indices;
}

/// A view, or a part, at a place that is a number of the run: it must lie in the tensor.
bool is_cut_by_number(const Node& node) {
  const bool is_part = node.op->is(graph::Trait::view) || node.op == &op::select_backward ||
                       node.op == &op::slice_backward || node.op == &op::select_scatter ||
                       node.op == &op::slice_scatter;
  return is_part && std::ranges::any_of(node.inputs, is_integer);
}

}  // namespace

bool fails_only_for_memory(const Node& node) {
  if (node.op == &op::max_pool2d_with_indices_backward) return has_own_indices(node);
  if (node.op->is(graph::Trait::random) || node.op->is(graph::Trait::may_fail)) return false;
  if (node.op == &op::embedding_dense_backward) return true;  // `embedding` has looked
  if (is_cut_by_number(node)) return false;
  if (moves_elements(node.op)) return true;
  // Integers may be divided by zero, or have negative exponents.
  const bool plain = std::ranges::none_of(node.inputs, has_integers);
  if (node.op->is(graph::Trait::elementwise))
    return plain || std::ranges::none_of(node.outputs, has_integers);
  return plain && is_arithmetic(node.op);
}

}  // namespace janus::torch
