// Weight prepacking: a matrix that several products of few rows read transposed is laid out once.
// Libraries would do so in each product.
//
// Does:       where rows meet the same matrix in products that could not be made one, because they
//             wait for each other or are in the iterations of a loop, and the matrix is the weight
//             of a `linear` or transposed, copies it, transposed, and multiplies by the copy.
// Requires:   no composite operators, no `gradient` nodes; after the passes that make products
//             fewer.
// Guarantees: the same values up to the rounding of sums.
// Must not:   copy where only few products gain from it.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph prepack_weights(const graph::Graph& graph);

}  // namespace janus::passes
