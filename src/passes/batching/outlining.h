// Outlining: what stands between the calls of a recursion, or between loops, in a graph's body
// becomes a function. Then invocations or iterations of several of them can be batched.
#pragma once

#include <functional>
#include <vector>

#include "graph/graph.h"

namespace janus::passes {

/// Edits a pass's own copy of a graph: what follows a node that `is_seed` says yes to and leads to
/// one, those nodes too, becomes functions, which are given back. What has to stay in the body
/// divides it; no function is made where it has fewer than `least` seeds.
std::vector<graph::Node*> outline(graph::Graph& graph, size_t least,
                                  const std::function<bool(const graph::Node&)>& is_seed);

}  // namespace janus::passes
