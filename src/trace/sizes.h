// Which sizes of tensors are constant, and which are symbols of the graph.
#pragma once

#include <set>
#include <span>

#include "trace/nodes.h"

namespace janus::trace {

/// Sets the patterns of all nodes and cells by what the traces showed. `runs` has the node of each
/// event of each trace.
///
/// A size of a feed or a cell that varied is a symbol; those that were always equal share it. So
/// does a size of another feed or a result that was always that symbol's, also if it was seen with
/// one value only. If that is a coincidence, a later trace shows it. Other sizes that did not vary
/// are constant. Other sizes of results that did are derived: the operator's shape rule has to say
/// them.
///
/// Gives the keys of nodes with an input whose sources have sizes that no symbol unites: they can't
/// be one value.
std::set<Key> set_sizes(Nodes& nodes, std::span<const Trace> traces,
                        std::span<const std::vector<NodeId>> runs);

}  // namespace janus::trace
