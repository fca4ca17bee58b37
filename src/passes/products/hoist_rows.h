// Batches products over the iterations of a loop: the rows of all iterations are multiplied in one
// product in front of the loop.
//
// Does:       where a `while` counts its iterations up to the size of a tensor, and takes the row
//             of that number, computes products of what is made of the row and of values from
//             outside alone for all rows at once; the iterations take their rows of the result.
//             Done before differentiation, it makes the gradients of such products one product
//             each, too.
// Requires:   no composite operators; best after `hoist`.
// Guarantees: the same values up to the rounding of sums.
// Must not:   compute rows that no iteration would reach; touch a loop that differentiates inside.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph hoist_rows(graph::Graph graph);

}  // namespace janus::passes
