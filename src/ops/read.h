// How operators that only move elements find them. Each index of the operand is a sum of multiples
// of the result's indices (reindex.h), such an index divided, or an element of an integer tensor.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"
#include "ops/reindex.h"

namespace janus::ops {

/// An index from an integer tensor. An index out of bounds fails the run.
struct LookUp {
  size_t dim;                 ///< dimension of the operand; the map does not cover it
  const graph::Value* index;  ///< i32 or i64
  size_t end;                 ///< its last dimension is the result's dimension end - 1
  bool wraps = false;         ///< negative indices count from the end
};

/// An index that is (index of the result + offset) / divisor, rounded down.
struct Division {
  size_t dim;  ///< the map does not cover it
  int64_t divisor, offset;
};

/// How a node reads its first operand, by the indices of its result.
struct Read {
  IndexMap map;
  std::vector<LookUp> look_ups = {};
  std::vector<Division> divisions = {};
  /// Dimensions that are read from their ends. The map has the offset of those with a known size;
  /// the size of the others varies.
  std::vector<size_t> turned = {};

  /// Null if the map covers the dimension.
  const LookUp* look_up(size_t dim) const;
  const Division* division(size_t dim) const;
  bool turns(size_t dim) const;
};

/// Whether the operator only reads: `reindex`, `flip`, `gather`, `index`, ...
bool is_read(const graph::Node& node);

/// Whether integer tensors give indices, so that the operator may fail the run.
bool looks_up(const graph::Node& node);

/// nullopt for other operators, and for tensors of rank 0.
std::optional<Read> read_of(const graph::Node& node);

}  // namespace janus::ops
