// Lowers scatters to reductions: a `reindex_reduce` that combines whole dimensions, such as y[i]
// from all x[i, j], becomes torch's reduction operator.
//
// Does:       the above, for sums, extrema, tests, and positions along one dimension or all.
// Requires:   no `gradient` nodes: gradients are those of `reindex_reduce`, and lie as they do.
// Guarantees: the same numbers, but for the order in which floats are added up; tensors that the
//             program may look at lie in order.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph map_reductions(const graph::Graph& graph);

}  // namespace janus::passes
