// Applies relu behind what only chooses or joins elements instead of in front of it.
//
//   max_pool(relu(x))       ->  relu(max_pool(x))
//   cat(relu(x), relu(y))   ->  relu(cat(x, y))
//
// relu never decreases, so the maximum of each window comes out the same; and then relu, and later
// its gradient, is computed for one element of each window instead of all. A join and the relu
// behind it are one kernel, which reads and writes each element once instead of twice.
//
// Does:       the above for max_pool2d_with_indices, max_pool3d_with_indices and cat.
// Requires:   no composite operators (they hide the pools); to come before `differentiate`.
// Guarantees: results and gradients are the same to the bit, NaN included: where a window's maximum
//             is positive its place is the same with and without relu, and elsewhere relu lets no
//             gradient through, whatever the place.
// Must not:   touch a pool whose places are used, a relu that something else needs, or a join of
//             relus that fuse with what computes their operands.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph late_relu(const graph::Graph& graph);

}  // namespace janus::passes
