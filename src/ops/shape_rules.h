// Helpers of shape rules. Every function that takes an Infer throws TypeError through it if eager
// would raise, or if that depends on symbolic dimensions.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "graph/op.h"
#include "ops/attributes.h"
#include "ops/promotion.h"

namespace janus::ops {

/// The traits of operators that compute element by element, and of those made of others.
inline constexpr graph::Trait elementwise = graph::Trait::pure | graph::Trait::elementwise;
inline constexpr graph::Trait composite = graph::Trait::pure | graph::Trait::composite;

/// The type of operand `input`; fails unless it is a tensor of real numbers.
const graph::Type& tensor_type(const graph::Infer& infer, size_t input);
/// The same, and the dtype must be floating.
const graph::Type& floating_tensor(const graph::Infer& infer, size_t input);
/// The same, and it must have `rank` dimensions.
const graph::Type& tensor_of_rank(const graph::Infer& infer, size_t input, int64_t rank);
/// Fails unless operand `input` is none or a number.
void require_number(const graph::Infer& infer, size_t input);

/// A Python dimension index, normalised to [0, rank). A tensor of rank 0 counts as having one.
int64_t wrap_dim(const graph::Infer& infer, int64_t dim, int64_t rank);
int64_t wrap_dim(int64_t dim, int64_t rank);  ///< for rules that run after infer
/// The dimensions in a reduction's attribute, sorted; None or an empty list means all.
std::vector<int64_t> reduced_dims(const graph::Attributes& attributes, std::string_view name,
                                  int64_t rank);

/// The broadcast of two dimensions, which are equal, or one of them is 1.
graph::Dim broadcast(const graph::Infer& infer, const graph::Dim& a, const graph::Dim& b);
graph::Shape broadcast(const graph::Infer& infer, const graph::Shape& a, const graph::Shape& b);
/// The broadcast of all tensor operands among `inputs`.
graph::Shape broadcast_inputs(const graph::Infer& infer, std::span<const size_t> inputs);
/// Fails unless the two are the same expression.
void require_equal(const graph::Infer& infer, const graph::Dim& a, const graph::Dim& b,
                   std::string_view what);

/// The promoted dtype of operands `inputs`; fails on complex ones.
graph::DType promoted(const graph::Infer& infer, std::span<const size_t> inputs);

/// `shape` with the `dims` removed, or replaced by 1.
graph::Shape reduced_shape(const graph::Shape& shape, std::span<const int64_t> dims, bool keep);

// Whole rules.
std::vector<graph::Type> same_as_first(const graph::Infer& infer);        ///< any real tensor
std::vector<graph::Type> same_as_floating(const graph::Infer& infer);     ///< floating only
std::vector<graph::Type> floating_like_first(const graph::Infer& infer);  ///< integers give f32
std::vector<graph::Type> boolean_like_first(const graph::Infer& infer);
std::vector<graph::Type> numeric_like_first(const graph::Infer& infer);  ///< fails on booleans
std::vector<graph::Type> arithmetic(const graph::Infer& infer);  ///< operands 0, 1 broadcast
std::vector<graph::Type> floating_arithmetic(const graph::Infer& infer);  ///< same, integers: f32
std::vector<graph::Type> comparison(const graph::Infer& infer);           ///< same, result b1

}  // namespace janus::ops
