// Slices whose position is a run-time number: `x[i:i + n]`, `x[i]`, and writes to them.
//
// The number decides the offset of a slice and no size. So one plan serves all numbers: views of
// such slices are moved at each run, operators on them are bound anew where the number changed.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace janus::execute {

/// Elements `first` to before `behind` of a dimension of size `size`.
struct MovingPart {
  const graph::Node* node = nullptr;
  size_t dimension = 0;
  graph::Dim first, behind, size;

  /// Attributes of the node depend on one of the symbols.
  bool depends_on(const std::set<std::string>& symbols) const;
};

/// The part that a node takes or writes, if all that its symbols decide is where that lies.
std::optional<MovingPart> moving_part(const graph::Node& node);

/// How far a view moves with the beginning of a part.
struct Move {
  size_t part = 0;        ///< index among the parts
  int64_t bytes_per = 0;  ///< bytes for each element that the part begins farther behind
  bool operator==(const Move&) const = default;
};

/// By how many bytes parts that begin at these elements move a view.
int64_t moved_bytes(const std::vector<Move>& moves, const std::vector<int64_t>& firsts);

}  // namespace janus::execute
