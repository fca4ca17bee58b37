// Which sizes of tensors are constant, and which are symbols of the graph.
#pragma once

#include <optional>
#include <span>

#include "trace/nodes.h"

namespace janus::trace {

/// Sets the patterns of all nodes and cells by what the traces showed. `runs` has the node of each
/// event of each trace.
///
/// A size that was the same in all traces is constant. One that varied is a symbol if it is one of
/// a feed or a cell; those that were always equal share it. So does a result whose size was always
/// that symbol's. Other sizes of results are derived: the operator's shape rule has to say them.
///
/// Gives the key of a node with an input whose sources have sizes that no symbol unites, if there
/// is one: they can't be one value.
std::optional<Key> set_sizes(Nodes& nodes, std::span<const Trace> traces,
                             std::span<const std::vector<NodeId>> runs);

}  // namespace janus::trace
