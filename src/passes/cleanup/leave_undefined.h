// Eliminates branch results that are dead on one side. It follows which sides run together: two
// `if`s on one condition, or on its opposite.
//
// Does:       replaces a result that tells which side was taken by the condition; hands on one by
//             one what a side packs into a frame for the same side of later `if`s alone; leaves
//             undefined what a side gives for nobody: results that are read only where the other
//             side was taken (gradients of what only the other side used, and their zeros).
// Requires:   no `gradient` nodes.
// Guarantees: the same values wherever they are read.
// Must not:   leave undefined what is written to a cell, leaves the graph or is carried on.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph leave_undefined(const graph::Graph& graph);

}  // namespace janus::passes
