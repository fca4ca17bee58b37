// Which values a gradient flows to, where the graph has `gradient` nodes of its own: those are
// expanded on a copy, so that gradients of gradients are exact.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"
#include "passes/reach/paths.h"

namespace janus::passes {

/// The values where gradients of `outputs` end: those that can have a gradient and that no gradient
/// passes through. In order of definition, each once; an output may itself be one.
std::vector<graph::Value*> differentiable_leaves(std::span<graph::Value* const> outputs);

/// For each target, whether a gradient of one of `outputs` flows to it. Through `gradient` nodes
/// with {create_graph=true} it follows what they will be expanded to: the gradient of a bias, say,
/// often does not depend on the bias.
std::vector<bool> reachable(std::span<graph::Value* const> outputs,
                            std::span<graph::Value* const> targets, Paths paths = Paths::any);

}  // namespace janus::passes
