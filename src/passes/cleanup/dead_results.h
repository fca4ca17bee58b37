// Eliminates dead results of nodes with blocks, and dead values that loops carry.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

/// Drops those that nobody needs (liveness.h). What computed them is left, unused. Edits the graph,
/// which must be a pass's own copy.
void drop_dead_results(graph::Graph& graph);

}  // namespace janus::passes
