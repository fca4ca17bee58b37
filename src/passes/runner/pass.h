// What a pass is: a function from graph to graph.
#pragma once

#include <functional>

#include "graph/graph.h"

namespace janus::passes {

/// Takes a finished graph and gives a new one that computes the same.
using Pass = std::function<graph::Graph(const graph::Graph&)>;

}  // namespace janus::passes
