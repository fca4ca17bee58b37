// Rules of views that other parts of the compiler use as well.
#pragma once

#include <optional>
#include <vector>

#include "graph/op.h"

namespace janus::ops {

/// `wanted` with its -1 replaced, for a tensor of shape `from`.
graph::Shape resolve_shape(const graph::Infer& infer, const graph::Shape& from,
                           const graph::Shape& wanted);

/// Result dimension i is operand dimension permutation[i].
using Permutation = std::vector<size_t>;

/// The permutation of an operator that only reorders its operand's `rank` dimensions; nullopt for
/// other operators, and where the order stays.
std::optional<Permutation> permutation_of(const graph::OpDef* op,
                                          const graph::Attributes& attributes, size_t rank);

/// The attributes start, end and step for a dimension of `size`: 0 <= start, and `length` elements.
struct SliceRange {
  graph::Dim start, stop;
  int64_t step = 1;
  graph::Dim length;
};
/// TypeError if it is not known whether a bound is negative.
SliceRange slice_range(const graph::Attributes& attributes, const graph::Dim& size);

}  // namespace janus::ops
