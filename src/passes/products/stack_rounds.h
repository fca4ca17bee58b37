// Multiplies the rows of all rounds behind a loop that adds a product up in each.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph stack_rounds(const graph::Graph& graph);

}  // namespace janus::passes
