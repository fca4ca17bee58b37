// Partitions a block of a function whose invocations are batched into units, each of which runs as
// one.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "passes/batching/flow.h"
#include "passes/batching/recursion.h"

namespace janus::passes {

/// The nodes of `block` in units, in an order in which each can follow the others: what one `rows`
/// node is to compute, or one node that is not put off.
std::vector<std::vector<graph::Node*>> batch_partition(graph::Block& block,
                                                       const Recursion& recursion,
                                                       const Flow& flow);

}  // namespace janus::passes
