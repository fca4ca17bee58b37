// Propagates affine index maps: a gather (`reindex`) that a view or a convolution computes becomes
// that operator.
//
//   sum over C, k of  x[n, C, a * s + b * k + c] * w[o, C, k]    ->  convolution
//   x at indices each of which follows one index of the result   ->  pad, slice, flip, permute
//
// Does:       the above, for convolutions of one to three dimensions, whatever the order in which
//             the indices stand; a factor b below 0 turns the weight around.
// Requires:   no composite operators; to come before `differentiate`, since what it makes has
//             gradients.
// Guarantees: the same numbers, but for the order in which a convolution adds up.
// Must not:   take sizes for equal that are not known to be; make a view of what anybody may look
//             at as a tensor: in eager it is a new one, row after row.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph map_indices(const graph::Graph& graph);

}  // namespace janus::passes
