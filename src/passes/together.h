// Makes a function of what stands between the calls of a recursion in a graph's body, so that
// invocations of several of them can be computed together.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace janus::passes {

/// Edits a pass's own copy of a graph. The new functions: what has to stay in the body divides what
/// stands between the calls of `functions`. None where there are too few calls for it to pay.
std::vector<graph::Node*> put_together(graph::Graph& graph,
                                       std::span<graph::Node* const> functions);

}  // namespace janus::passes
