// How operators that only move elements find them: each index of the operand is a sum of multiples
// of the place's indices (reindex.h), such an index divided, or what a tensor of integers holds at
// the place.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"
#include "ops/reindex.h"

namespace janus::ops {

/// An index that a tensor gives. The run ends where it is outside.
struct LookUp {
  size_t dim;                 ///< of the operand, which the map does not follow
  const graph::Value* index;  ///< of i32 or i64
  size_t end;                 ///< its last dimension runs along the result's dimension end - 1
  bool wraps = false;         ///< negative ones count from the end
};

/// An index that is the result's own of that dimension, plus a number, divided and rounded down.
struct Division {
  size_t dim;  ///< which the map does not follow
  int64_t divisor, offset;
};

/// A read of a node's first operand, by the indices of its result.
struct Read {
  IndexMap map;
  std::vector<LookUp> look_ups = {};
  std::vector<Division> divisions = {};
  /// Dimensions that are counted from their ends. The map has the offset of those whose size is
  /// known; the others' size varies.
  std::vector<size_t> turned = {};

  /// Null where the map says it all.
  const LookUp* look_up(size_t dim) const;
  const Division* division(size_t dim) const;
  bool turns(size_t dim) const;
};

/// Whether the operator is such a read: `reindex`, `flip`, `gather`, `index`, ...
bool is_read(const graph::Node& node);

/// Whether tensors of integers are among its operands' indices, so that it may end the run.
bool looks_up(const graph::Node& node);

/// nullopt for other operators, and tensors without dimensions.
std::optional<Read> read_of(const graph::Node& node);

}  // namespace janus::ops
