// Dynamic batching: invocations of a function that calls itself, and iterations of loops that do
// not depend on each other, are computed together.
//
// Does:       gathers the operators on tensors of each block of such a function or loop into `rows`
//             nodes, which the executor puts off and computes for many invocations at once. Those
//             that only add something to sums (accumulators.h), and what only they need, have nodes
//             of their own: they may wait until all invocations are over.
// Requires:   no composite operators, no `gradient` nodes.
// Guarantees: what decides which calls and iterations there are needs no result of a `rows` node.
// Must not:   touch a function whose control depends on the contents of tensors, or that has an
//             operator on tensors without a form for many rows (batching_rules.h); nor loops whose
//             iterations have nothing in common with others (parallel_loops.h).
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph batch(graph::Graph graph);

}  // namespace janus::passes
