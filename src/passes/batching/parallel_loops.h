// Which loops of a graph's body have iterations that can be batched, with each other or with those
// of other loops.
#pragma once

#include <unordered_set>

#include "graph/graph.h"

namespace janus::passes {

/// Loops that multiply a few rows by a matrix of some size in each iteration, and either need no
/// product of one iteration in another (sequences, one in each iteration), or stand beside others
/// with the same matrix (sequences, a loop for each). Where an iteration's rows are many already,
/// more of them gain nothing.
std::unordered_set<const graph::Node*> parallel_loops(const graph::Block& body);

}  // namespace janus::passes
