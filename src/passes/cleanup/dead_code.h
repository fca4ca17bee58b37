// Dead code elimination: drops nodes whose results nobody needs, and results of nodes with blocks
// that nobody needs.
//
// Does:       keeps what the results, the effects and the guards depend on; also pre-existing
//             tensors of which only a size is needed, if no other shows it.
// Requires:   nothing.
// Guarantees: every pure node that is left is needed.
// Must not:   drop a node that writes, may raise (may_raise.h: the program would have) or draws
//             random numbers (the generator would be left in another state), nor a block that
//             holds one.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph remove_dead_code(graph::Graph graph);

}  // namespace janus::passes
