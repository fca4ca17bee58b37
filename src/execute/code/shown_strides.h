// What decides how the tensors lie of which a program sees the strides.
#pragma once

#include <span>
#include <unordered_set>

#include "execute/program/program.h"

namespace janus::execute {

/// The nodes with blocks, or on containers, whose results lead to those results of the graph of
/// which only the run knows how they lie: what these nodes give may lie in one way in one run and
/// in another way in the next.
std::unordered_set<const graph::Node*> nodes_behind(const graph::Graph& graph,
                                                    std::span<const ShownResult> results);

}  // namespace janus::execute
