// Which operands and results of a node its gradient rule keeps for the backward run.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace janus::passes {

/// What a node's gradient rule uses of the forward run: flags for its operands and for its results.
struct SavedValues {
  std::vector<bool> inputs;
  std::vector<bool> outputs;
};
/// Found by running the rule. Throws TypeError if the node has no gradient rule.
SavedValues saved_values(const graph::Node& node);

/// Whether eager's gradient of the node keeps that result whatever our rule uses.
bool eager_saves_result(const graph::Node& node, size_t index);

}  // namespace janus::passes
