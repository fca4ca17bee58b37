// Which operands of a composite operator a gradient of one of its results reaches, by its parts.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "passes/reach/search.h"

namespace janus::passes {

/// A flag for each operand of the value's node. The operator is decomposed for it, once for all
/// nodes that are alike: those in a model mostly are, and each is asked about several times.
std::vector<bool> inputs_reached_by_parts(const graph::Value& output, Paths paths,
                                          const Search& search);

}  // namespace janus::passes
