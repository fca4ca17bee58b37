// Which loops of a graph's body have iterations that can be batched, with each other or with those
// of other loops.
#pragma once

#include <unordered_set>

#include "graph/graph.h"

namespace janus::passes {

/// Loops that multiply a few rows by a matrix of some size in each iteration. Their iterations are
/// independent (one sequence in each iteration), or other loops multiply by the same matrix (one
/// loop for each sequence). Iterations with many rows gain nothing.
std::unordered_set<const graph::Node*> parallel_loops(const graph::Block& body);

}  // namespace janus::passes
