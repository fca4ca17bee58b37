// Affine index maps between two tensors: each index of the one is a sum of multiples of the indices
// of the other and a number. Programs write them with `torchjanus.meta`.
#pragma once

#include "graph/graph.h"

namespace janus::ops {

/// index k of the mapped tensor = offset[k] + sum over j of factor(k, j) * index j of the space.
struct IndexMap {
  size_t space_rank = 0;
  std::vector<int64_t> factors;  ///< row by row: one row for each index of the mapped tensor
  std::vector<int64_t> offset;

  int64_t factor(size_t mapped, size_t space) const { return factors[mapped * space_rank + space]; }
  size_t mapped_rank() const { return offset.size(); }
  /// Whether index `mapped` of the tensor always equals index `space` of the space.
  bool is_same(size_t mapped, size_t space) const;
  /// Whether some index of the tensor depends on that index of the space, and on no other.
  bool is_followed_alone(size_t space) const;

  friend bool operator==(const IndexMap&, const IndexMap&) = default;
};

/// An attribute of a map. Throws TypeError if one of the numbers varies.
std::vector<int64_t> numbers_of(const graph::Attributes& attributes, std::string_view name);

/// The map of a `reindex` or `reindex_reduce` node.
IndexMap index_map(const graph::Attributes& attributes, size_t space_rank);

}  // namespace janus::ops
