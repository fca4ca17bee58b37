// Horizontal fusion of products: rows are multiplied by all their matrices at once, as those of
// queries, keys and values are. A wide product takes less time than narrow ones.
//
// Does:       makes one product of `linear`s of one input, or of `mm`s with one left operand, that
//             do not depend on each other; the matrices come one after the other.
// Requires:   no composite operators, no `gradient` nodes; best after `stack_products`.
// Guarantees: the same values up to the rounding of sums.
// Must not:   make a cycle; copy more than it saves; let what leaves the graph (escaping.h) be a
//             part of a larger tensor.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph widen_products(graph::Graph graph);

}  // namespace janus::passes
