// Constant folding: what does not depend on the run is computed at compile time.
//
// Does:       asks each operator's `fold` whether its node has a known value, numbers' arithmetic
//             included.
// Requires:   no composite operators and no `gradient` nodes (a fold would hide a path that a
//             gradient takes).
// Guarantees: a replaced result has the same type and, bit for bit, the same value.
// Must not:   make a result of the graph the same value as an input, a state or another result:
//             they are different tensors for the program (escaping.h).
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph fold_constants(const graph::Graph& graph);

}  // namespace janus::passes
