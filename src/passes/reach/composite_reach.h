// Which operands of a composite operator a gradient of one of its results reaches, by its parts.
#pragma once

#include <vector>

#include "passes/reach/reachability.h"

namespace janus::passes {

/// A flag for each operand of the value's node. The operator is decomposed for it, once for all
/// nodes that are alike: those in a model mostly are, and each is asked about several times.
std::vector<bool> inputs_reached_by_parts(const graph::Value& output, Paths paths);

/// A graph of only that node: its operands are inputs (constants stay constants), its results
/// results.
graph::Graph graph_of(const graph::Node& node);

}  // namespace janus::passes
