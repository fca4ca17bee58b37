// One iteration space for a group of nodes, and how each of their values lies in it: what the
// fusion compiler asks before it computes the group in one kernel, and what it then goes by.
//
// Elementwise operators compute at each point of the space; reductions combine the points of a row,
// the same dimensions for all reductions of a group. A read (read.h) takes elements of an operand
// from outside at indices that follow the point's, or that others of the group's values are; a
// `reindex` a number outside of it. An operator that is neither counts
// as what it is made of (OpDef::decompose): softmax is a maximum, a sum, and elementwise operators
// around them; concatenation and padding are `reindex` and a choice by position, pooling a
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

/// The space that an operator reduces, and which of its dimensions (sorted).
struct Reduction {
  graph::Shape space;
  std::vector<int64_t> dims;

  friend bool operator==(const Reduction&, const Reduction&) = default;
};

/// nullopt for operators that are not, or not made of, reductions over one set of dimensions.
std::optional<Reduction> reduction_of(const graph::Node& node);

/// Whether kernels are to compute it. Rows are computed one by one on one thread each: a space with
/// few rows is left to the library where it is so large that threads share it.
bool has_rows_enough(const Reduction& reduction);

/// Whether the operator itself combines elements: a sum, not what is made of sums.
bool is_plain_reduction(const graph::Node& node);

/// Whether the operator combines the elements of windows, or goes back to them.
bool is_pooling(const graph::Node& node);

/// Whether the operator is, or is made of, reads at other indices than those of the point.
bool is_reindexing(const graph::Node& node);

/// Whether the operator reads that operand at other indices, so that it must be in memory.
bool is_read_elsewhere(const graph::Node& node, size_t input);

/// For each dimension of a value the dimension of the space along which it runs; -1: it has size 1,
/// or a map says where it is read.
using Axes = std::vector<int>;

class IndexSpace {
 public:
  /// nullopt if the nodes, in program order, do not share one space. `constant` nodes may be among
  /// them.
  static std::optional<IndexSpace> of(std::span<const graph::Node* const> nodes);

  const graph::Shape& shape() const { return shape_; }
  size_t rank() const { return shape_.size(); }
  /// Bit d: dimension d is reduced.
  uint32_t reduced() const { return reduced_; }
  /// The nodes, what is made of others taken apart: elementwise operators, reductions, constants,
  /// sizes, and views that only add or leave out dimensions of size 1 or broadcast.
  std::span<const graph::Node* const> nodes() const { return nodes_; }
  /// The value that a result of a node that was taken apart is.
  const graph::Value* resolved(const graph::Value* value) const;
  /// Null for what is not a tensor of the group.
  const Axes* axes(const graph::Value* value) const;
  /// Null for what is read at the point itself.
  const IndexMap* map(const graph::Value* value) const;
  /// Sizes of the dimensions that no value from outside tells; -1 for all others.
  std::span<const int64_t> fixed_sizes() const { return fixed_sizes_; }
  /// Whether the value has an element for each point of the space, or one for each row.
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
  std::vector<std::unique_ptr<graph::Graph>> parts_;  ///< hold the nodes that were taken apart
};

}  // namespace janus::ops
