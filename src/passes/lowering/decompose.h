// Lowers composite operators: each becomes the primitive operators that it is made of.
//
// Does:       each node whose operator has Trait::composite becomes the nodes that its `decompose`
//             builds; those are decomposed in turn.
// Requires:   nothing.
// Guarantees: no composite operator is left, in nested blocks neither.
// Must not:   change the order of nodes that draw random numbers or have other effects.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph decompose(const graph::Graph& graph);

}  // namespace janus::passes
