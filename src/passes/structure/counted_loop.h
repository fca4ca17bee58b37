// Counted loops: those whose iteration count is a size.
#pragma once

#include <optional>

#include "graph/graph.h"

namespace janus::passes {

/// A `while` with as many iterations as a dimension is large, or as a number says. All iterations
/// work on tensors of the same sizes.
struct CountedLoop {
  graph::Block* body;
  const graph::Value* counter;  ///< 0 in the first iteration, 1 in the next
  graph::Dim iterations;

  /// Nullopt for other nodes.
  static std::optional<CountedLoop> of(const graph::Node& node);
};

/// Whether a `row` is taken in a loop over all rows of its tensor, by the number of the iteration.
bool is_of_iteration(const graph::Node& row);

}  // namespace janus::passes
