// Lowers norms of few elements to operators that kernels compute.
//
//   vector_norm x, 2                        ->  sqrt(sum(x * x))
//   vector_norm (stack of numbers a, b), 2  ->  sqrt(a * a + b * b)
//
// Does:       the above, where a call of ATen's costs more than what it computes: the lengths of a
//             model's gradients, which are clipped by the length of those.
// Requires:   to come after `differentiate`: the gradient of a length is written for the length.
// Guarantees: the same numbers, but for the order of their sums.
// Must not:   touch half precision, which is rounded in other places then.
#pragma once

#include "graph/graph.h"
#include "passes/fusion/can_fuse.h"

namespace janus::passes {

graph::Graph small_norms(const graph::Graph& graph, const CanFuse& can_fuse);

}  // namespace janus::passes
