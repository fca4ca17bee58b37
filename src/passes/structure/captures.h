// The values that a node uses: its operands, and what its blocks and the functions that it runs
// capture from around them.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace janus::passes {

/// The operands of `node`, and for control flow also the outer values that its blocks, and the
/// functions that it runs, use.
std::vector<graph::Value*> operands(const graph::Node& node);

/// Only the latter.
std::vector<graph::Value*> outer_values(const graph::Node& node);

}  // namespace janus::passes
