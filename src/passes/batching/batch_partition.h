// Partitions a block of a function with batched invocations into units. A unit runs as one.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "passes/batching/flow.h"
#include "passes/batching/recursion.h"

namespace janus::passes {

/// The nodes of `block` in units, in an order that keeps dependences. A unit is what one `rows`
/// node computes, or one node that is not deferred.
std::vector<std::vector<graph::Node*>> batch_partition(graph::Block& block,
                                                       const Recursion& recursion,
                                                       const Flow& flow);

}  // namespace janus::passes
