// The only list of operators: a name here and one block in one of the files of this folder.
// A name without a block is a link error; a block without a name does not compile.
//
// Several operators may name the same Python callable: they are its overloads. A call is bound to
// the first one in this list whose signature takes the arguments and whose shape rule accepts them.
#pragma once

#include <span>

#include "graph/op.h"

// clang-format off
#define TORCHJANUS_OPS(X)                                                                       \
  /* container.cpp */                                                                           \
  X(frame_pack) X(frame_unpack) X(list_new) X(list_push) X(list_pop) X(list_size)               \
  /* list_access.cpp */                                                                         \
  X(list_item) X(list_reverse) X(list_resize) X(list_sum) X(list_only) X(list_stack)            \
  X(list_unstack) X(list_slice) X(list_join) X(list_pick) X(list_order) X(list_find)            \
  X(list_find_object) X(list_covers)                                                            \
  /* structure.cpp */                                                                           \
  X(constant) X(state) X(commit) X(rebind) X(guard) X(size) X(dimension) X(gradient) X(detach) X(undefined) X(fused) \
  X(if_) X(while_) X(function) X(call) X(opaque) X(opaque_backward)                             \
  /* object.cpp */                                                                              \
  X(object_constant) X(object_is_instance_of_class) X(object_is) X(object_has_attribute)        \
  X(object_equals_constant) X(object_attribute) X(object_length) X(object_item)                 \
  X(object_entry) X(object_has_entry) X(object_value)                                           \
  /* scalar.cpp */                                                                              \
  X(scalar_add) X(scalar_sub) X(scalar_mul) X(scalar_truediv) X(scalar_floordiv)                \
  X(scalar_mod) X(scalar_pow) X(scalar_neg) X(scalar_pos) X(scalar_abs) X(scalar_and)           \
  X(scalar_or) X(scalar_xor) X(scalar_invert) X(scalar_lshift) X(scalar_rshift) X(scalar_eq)    \
  X(scalar_ne) X(scalar_lt) X(scalar_le) X(scalar_gt) X(scalar_ge) X(scalar_min)                \
  X(scalar_max) X(scalar_select) X(scalar_not) X(scalar_bool) X(scalar_float) X(scalar_int)     \
  X(scalar_floor) X(scalar_ceil) X(scalar_round) X(scalar_sqrt) X(scalar_exp) X(scalar_sin)     \
  X(scalar_cos) X(scalar_tan) X(scalar_tanh) X(scalar_log) X(scalar_isnan) X(scalar_isinf)      \
  X(scalar_isfinite)                                                                            \
  /* python.cpp */                                                                              \
  X(python_call) X(python_draw)                                                                 \
  /* elementwise.cpp */                                                                         \
  X(neg) X(abs) X(sign) X(exp) X(exp2) X(expm1) X(log) X(log2) X(log10) X(log1p) X(sqrt)        \
  X(rsqrt) X(reciprocal) X(square) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh)         \
  X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) X(erf) X(erfc) X(sigmoid) X(floor) X(ceil)         \
  X(trunc) X(round) X(frac) X(isnan) X(isinf) X(isfinite)                                       \
  /* comparison.cpp */                                                                          \
  X(eq) X(ne) X(lt) X(le) X(gt) X(ge) X(logical_and) X(logical_or) X(logical_xor)               \
  X(logical_not) X(bitwise_and) X(bitwise_or) X(bitwise_xor) X(bitwise_not)                     \
  /* activation.cpp */                                                                          \
  X(relu) X(threshold_backward) X(threshold) X(leaky_relu) X(elu) X(functional_elu) X(selu)     \
  X(celu) X(silu) X(mish) X(gelu) X(softplus) X(log_sigmoid) X(hardtanh) X(relu6)               \
  X(hardsigmoid) X(hardswish) X(softsign) X(tanhshrink) X(glu) X(prelu) X(clamp)                \
  X(clamp_tensor)                                                                               \
  X(clamp_min) X(clamp_max) X(softmax_native) X(softmax_backward_data) X(log_softmax_native)    \
  X(log_softmax_backward_data) X(softmax) X(log_softmax) X(functional_softmax)                  \
  X(functional_log_softmax)                                                                     \
  /* arithmetic.cpp */                                                                          \
  X(add) X(sub) X(rsub) X(mul) X(div) X(div_mode) X(floor_divide) X(remainder) X(fmod)          \
  X(pow_scalar) X(pow_base) X(pow) X(maximum) X(minimum) X(atan2) X(xlogy) X(where)             \
  X(masked_fill) X(masked_fill_tensor) X(lerp) X(addcmul) X(addcdiv)                            \
  /* reduction.cpp */                                                                           \
  X(sum) X(mean) X(prod) X(prod_dim) X(amax) X(amin) X(max) X(min) X(max_dim) X(min_dim)        \
  X(argmax) X(argmin) X(any) X(all) X(var_all) X(std_all) X(var_unbiased) X(std_unbiased)       \
  X(var) X(std) X(var_mean_all) X(var_mean_unbiased) X(var_mean) X(vector_norm) X(norm)         \
  X(logsumexp) X(cumsum) X(sort) X(argsort) X(topk)                                             \
  /* matmul.cpp */                                                                              \
  X(mm) X(bmm) X(mv) X(dot) X(outer) X(addmm) X(baddbmm) X(addmv) X(matmul) X(linear)           \
  /* recurrent.cpp */                                                                           \
  X(gru_cell) X(lstm_cell) X(rnn_tanh_cell) X(rnn_relu_cell)                                    \
  /* convolution.cpp */                                                                         \
  X(convolution) X(convolution_backward) X(conv1d) X(conv1d_padding) X(conv_transpose1d)        \
  X(conv2d) X(conv2d_padding) X(conv_transpose2d) X(conv3d) X(conv3d_padding)                   \
  X(conv_transpose3d)                                                                           \
  /* pooling.cpp */                                                                             \
  X(max_pool2d_with_indices) X(max_pool2d_with_indices_backward) X(max_pool3d_with_indices)     \
  X(max_pool3d_with_indices_backward) X(max_pool1d) X(max_pool2d) X(max_pool3d)                 \
  X(functional_max_pool1d) X(functional_max_pool2d) X(functional_max_pool3d) X(avg_pool2d)      \
  X(avg_pool2d_backward) X(avg_pool1d) X(adaptive_avg_pool2d_native)                            \
  X(adaptive_avg_pool2d_backward) X(adaptive_avg_pool2d) X(adaptive_avg_pool1d)                 \
  /* normalisation.cpp */                                                                       \
  X(batch_norm_train) X(batch_norm_no_stats) X(batch_norm_backward) X(batch_norm)               \
  X(functional_batch_norm) X(native_layer_norm) X(native_layer_norm_backward) X(layer_norm)     \
  X(group_norm) X(instance_norm) X(normalize) X(embedding) X(embedding_dense_backward)                           \
  X(functional_embedding)                                                                       \
  /* loss.cpp */                                                                                \
  X(squared_errors) X(smooth_errors) X(huber_errors) X(mse_loss) X(functional_mse_loss) X(l1_loss) X(functional_l1_loss) X(smooth_l1_loss)         \
  X(functional_smooth_l1_loss) X(huber_loss) X(functional_huber_loss) X(kl_div)                 \
  X(functional_kl_div) X(binary_cross_entropy) X(functional_binary_cross_entropy)               \
  X(binary_cross_entropy_with_logits) X(functional_binary_cross_entropy_with_logits)            \
  X(nll_loss_forward) X(nll_loss_backward) X(nll_loss2d_forward) X(nll_loss2d_backward)         \
  X(class_loss) X(count_classes)                                                                \
  X(nll_loss) X(functional_nll_loss) X(cross_entropy_loss) X(functional_cross_entropy)          \
  /* shape.cpp */                                                                               \
  X(view) X(reshape) X(view_as) X(reshape_as) X(flatten) X(unflatten) X(squeeze)                \
  X(squeeze_all) X(unsqueeze) X(transpose) X(t) X(matrix_transpose) X(permute) X(movedim)       \
  X(expand) X(expand_as) X(sum_to_size) X(contiguous)                                           \
  /* parts.cpp */                                                                               \
  X(select) X(slice) X(narrow) X(diagonal) X(select_backward) X(slice_backward)                 \
  X(diagonal_backward) X(select_scatter) X(slice_scatter) X(diagonal_scatter) X(split)          \
  X(split_with_sizes) X(chunk) X(unbind) X(row) X(row_backward) X(add_to_row)                   \
  /* indexing.cpp */                                                                            \
  X(gather) X(scatter) X(scatter_value) X(scatter_add) X(index_select) X(index_add)             \
  X(take_along_dim) X(index) X(index_put) X(nonzero_static) X(cat) X(stack) X(repeat) X(tile)   \
  X(flip) X(roll) X(constant_pad_nd) X(pad) X(tril) X(triu) X(one_hot) X(position) X(pick)      \
  /* reindex.cpp */                                                                             \
  X(reindex) X(reindex_divided) X(reindex_reduce) X(stop_fuse)                                  \
  /* creation.cpp */                                                                            \
  X(zeros) X(ones) X(full) X(scalar_tensor) X(zeros_like) X(new_zeros) X(ones_like)             \
  X(new_ones) X(full_like) X(new_full) X(arange) X(arange_start) X(linspace) X(eye) X(eye_m)    \
  X(fill) X(fill_tensor) X(zero) X(copy)                                                        \
  /* random.cpp */                                                                              \
  X(rand) X(randn) X(rand_like) X(randn_like) X(randint) X(randint_low) X(randperm)             \
  X(bernoulli) X(bernoulli_p) X(uniform) X(normal) X(exponential) X(dropout)                    \
  X(functional_dropout) X(feature_dropout)                                                      \
  /* cast.cpp */                                                                                \
  X(to) X(to_other) X(type_as) X(to_float) X(to_double) X(to_half) X(to_bfloat16) X(to_long)    \
  X(to_int) X(to_short) X(to_char) X(to_byte) X(to_bool) X(clone) X(positive) X(item)

// clang-format on

namespace janus::op {
#define X(name) extern const graph::OpDef name;
TORCHJANUS_OPS(X)
#undef X
}  // namespace janus::op

namespace janus::ops {

/// Every operator.
std::span<const graph::OpDef* const> all();

/// The table of all operators, for parsing.
const graph::OpTable& table();

}  // namespace janus::ops
