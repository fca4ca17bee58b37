// Batches products by one matrix: a product of many rows takes less time than many products of few.
//
// Does:       makes one product of those with one matrix (and bias) that do not depend on each
//             other, as an unrolled loop's are with its inputs; their rows come one after the
//             other. Takes a view for a `cat` or `stack` of what lies so already.
// Requires:   no composite operators, no `gradient` nodes; best after `sum_products`, whose stacks
//             are used again.
// Guarantees: the same values up to the rounding of sums.
// Must not:   make a cycle; copy more than it saves; let what leaves the graph (escaping.h) be a
//             part of a larger tensor.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph stack_products(graph::Graph graph);

}  // namespace janus::passes
