// Loop fission of products: a loop that adds a matrix product up in each iteration keeps the rows,
// and one product behind the loop multiplies all of them.
//
// Does:       where a `while` has as many iterations as a dimension is large, and adds products of
//             rows to a value that it only carries, as a backward loop does to the gradient of a
//             weight, keeps the rows of each iteration in lists, and makes one product of them
//             behind the loop.
// Requires:   no composite operators, no `gradient` nodes; best after `simplify_control`.
// Guarantees: the same values up to the rounding of sums.
// Must not:   touch a loop that may have no iteration; keep more rows than products are worth.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph stack_rounds(graph::Graph graph);

}  // namespace janus::passes
