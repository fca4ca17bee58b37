// The iteration space of a group of nodes, and how each of their values lies in it. Fusion asks for
// it before it computes a group in one kernel, and lowering follows it.
//
// Elementwise operators compute at each point of the space. Reductions combine the points of a row;
// all reductions of a group reduce the same dimensions. A read (read.h) takes elements of an
// operand from outside, at indices that follow those of the point or that other values of the group
// give; a `reindex` gives a fixed number where it leaves the operand. Any other operator counts as
// its decomposition (OpDef::decompose): softmax is a maximum, a sum, and elementwise operators
// around them; concatenation and padding are `reindex` and a choice by position; pooling is a
// `reindex` for each place of a window.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "ops/reindex.h"

namespace janus::ops {

/// The space of a reduction, and its reduced dimensions (sorted).
struct Reduction {
  graph::Shape space;
  std::vector<int64_t> dims;

  friend bool operator==(const Reduction&, const Reduction&) = default;
};

/// nullopt unless the operator is, or decomposes into, reductions over one set of dimensions.
std::optional<Reduction> reduction_of(const graph::Node& node);

/// Whether kernels should compute it. Each row is computed on one thread, so a space with few rows
/// is left to the library if it is large enough for several threads.
bool has_rows_enough(const Reduction& reduction);

/// Whether the operator itself combines elements: a sum, but not an operator made of sums.
bool is_plain_reduction(const graph::Node& node);

/// Whether the operator is a pooling or the gradient of one.
bool is_pooling(const graph::Node& node);

/// Whether the operator is, or decomposes into, reads at other indices than those of the point.
bool is_reindexing(const graph::Node& node);

/// Whether the operator reads that operand at other indices, so that it must be in memory.
bool is_read_elsewhere(const graph::Node& node, size_t input);

/// For each dimension of a value: its dimension of the space; -1 if its size is 1, or a map says
/// where it is read.
using Axes = std::vector<int>;

class IndexSpace {
 public:
  /// nullopt if the nodes, given in program order, share no space. `constant` nodes may be among
  /// them.
  static std::optional<IndexSpace> of(std::span<const graph::Node* const> nodes);

  const graph::Shape& shape() const { return shape_; }
  size_t rank() const { return shape_.size(); }
  /// Bit d: dimension d is reduced.
  uint32_t reduced() const { return reduced_; }
  /// The nodes after decomposition: elementwise operators, reductions, constants, sizes, and views
  /// that only broadcast, or add or remove dimensions of size 1.
  std::span<const graph::Node* const> nodes() const { return nodes_; }
  /// The value that computes a result of a decomposed node.
  const graph::Value* resolved(const graph::Value* value) const;
  /// Null if the value is no tensor of the group.
  const Axes* axes(const graph::Value* value) const;
  /// Null if the value is read at the point itself.
  const IndexMap* map(const graph::Value* value) const;
  /// Sizes of the dimensions that no operand determines; -1 for all others.
  std::span<const int64_t> fixed_sizes() const { return fixed_sizes_; }
  /// Whether the value has one element for each point of the space, or one for each row.
  bool is_storable(const graph::Value* value) const;

 private:
  class Finder;

  graph::Shape shape_;
  uint32_t reduced_ = 0;
  std::vector<const graph::Node*> nodes_;
  std::unordered_map<const graph::Value*, const graph::Value*> same_;
  std::unordered_map<const graph::Value*, Axes> axes_;
  std::unordered_map<const graph::Value*, IndexMap> maps_;
  std::vector<int64_t> fixed_sizes_;
  std::vector<std::unique_ptr<graph::Graph>> parts_;  ///< own the nodes of decompositions
};

}  // namespace janus::ops
