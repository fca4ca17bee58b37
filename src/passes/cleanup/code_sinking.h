// Code sinking: what only the sides of an `if` need moves into these sides.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

/// Edits a block of a pass's own copy of a graph, and the blocks in it: tensor operators alone.
void sink_code(graph::Graph& graph, graph::Block& block);

}  // namespace janus::passes
