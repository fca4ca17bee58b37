// Computes a sum of matrix products as one product, such as the gradient of a weight that an
// unrolled loop uses many times.
//
// Does:       in sums, makes one product of several, whose rows come one after the other; adds up
//             the rows of matrices that stand so already together; makes one product of those of
//             narrow matrices; puts gradients of the parts of a tensor beside each other.
// Requires:   no composite operators, no `gradient` nodes.
// Guarantees: the same values up to the rounding of sums and the sign of zeros.
// Must not:   copy more than it saves; touch terms that are used elsewhere as well.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph sum_products(const graph::Graph& graph);

}  // namespace janus::passes
