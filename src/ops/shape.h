// Rules of views that other parts of the compiler need too.
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

/// Of an operator that only reorders its operand's dimensions, `rank` of them; nullopt for others,
/// and where there is nothing to reorder.
std::optional<Permutation> permutation_of(const graph::OpDef* op,
                                          const graph::Attributes& attributes, size_t rank);

/// What the attributes start, end and step mean for a dimension of `size`: 0 <= start, and
/// length = how many elements there are.
struct SliceRange {
  graph::Dim start, stop;
  int64_t step = 1;
  graph::Dim length;
};
/// TypeError if it is not known whether a bound is negative.
SliceRange slice_range(const graph::Attributes& attributes, const graph::Dim& size);

}  // namespace janus::ops
