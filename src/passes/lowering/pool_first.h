// Takes the maximum of each window before relu instead of after it.
//
//   max_pool(relu(x))  ->  relu(max_pool(x))
//
// relu never decreases, so both give the same numbers, but the second computes relu, and later its
// gradient, for one element of each window instead of all.
//
// Does:       the above for max_pool2d_with_indices and max_pool3d_with_indices.
// Requires:   no composite operators (they hide the pools); to come before `differentiate`.
// Guarantees: results and gradients are the same to the bit, NaN included: where a window's maximum
//             is positive its place is the same with and without relu, and elsewhere relu lets no
//             gradient through, whatever the place.
// Must not:   touch a pool whose places are used, or a relu that something else needs.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph pool_first(const graph::Graph& graph);

}  // namespace janus::passes
