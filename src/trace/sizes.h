// Which sizes of tensors are constant, and which are symbols of the graph.
#pragma once

#include <set>
#include <span>

#include "trace/nodes.h"

namespace janus::trace {

/// Sets the patterns of all nodes and cells by what the traces showed. `runs` has the node of each
/// event of each trace.
///
/// A size that did not vary is constant, unless it was always a symbol of an operand. One of a feed
/// or a cell that did is a symbol; those that were always equal share it, also sizes of results and
/// attributes. If that is a coincidence, a later trace shows it. Other sizes may follow from
/// symbols (trace/size_expression.h). Otherwise an attribute is a symbol of its own, and a result's
/// size is derived: the operator's shape rule has to say it.
///
/// Gives the keys of nodes with an input whose sources have sizes that no symbol unites: they can't
/// be one value.
std::set<Key> set_sizes(Nodes& nodes, std::span<const Trace> traces,
                        std::span<const std::vector<NodeId>> runs);

}  // namespace janus::trace
