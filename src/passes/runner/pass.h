// What a pass is: a function from graph to graph.
#pragma once

#include <functional>

#include "graph/graph.h"

namespace janus::passes {

/// Takes a finished graph, which it may change, and gives one that computes the same.
using Pass = std::function<graph::Graph(graph::Graph)>;

}  // namespace janus::passes
