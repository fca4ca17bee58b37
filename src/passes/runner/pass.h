// What a pass is, and the pass runner's view of it.
#pragma once

#include <functional>

#include "graph/graph.h"

namespace janus::passes {

/// Takes a finished graph and gives a new one that computes the same.
using Pass = std::function<graph::Graph(const graph::Graph&)>;

/// Whether a fused kernel can compute this node (operator and dtypes); kernels/ knows the answer.
using CanFuse = std::function<bool(const graph::Node&)>;

}  // namespace janus::passes
