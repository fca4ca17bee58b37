// The order in which eager's engine would come to the leaves behind some results: hooks of leaves
// show it.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace janus::torch {

/// Indices into `leaves`: first those that eager accumulates into first, at last those that no
/// gradient comes to. The graph is as the program wrote it, so that its nodes are eager's.
std::vector<size_t> order_of_leaves(std::span<graph::Value* const> results,
                                    std::span<graph::Value* const> leaves);

}  // namespace janus::torch
