// Which nodes decide the layout of results whose strides the program sees: those results may not
// simply be copied into the layout that an earlier run had.
#pragma once

#include <span>
#include <unordered_set>

#include "execute/code/shown_result.h"

namespace janus::execute {

/// The nodes with blocks, or on containers, whose results lead to those results of the graph of
/// which only the run knows how they lie: what these nodes give may lie in one way in one run and
/// in another way in the next.
std::unordered_set<const graph::Node*> nodes_behind(const graph::Graph& graph,
                                                    std::span<const ShownResult> results);

}  // namespace janus::execute
