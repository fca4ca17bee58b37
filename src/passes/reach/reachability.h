// Which values a gradient flows to, without a look into `gradient` nodes (gradient/reachable.h
// looks into them). For the frontend, on a graph that is still being built, and for
// differentiation.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"
#include "passes/reach/function_reach.h"
#include "passes/reach/gradient_edges.h"
#include "passes/reach/paths.h"

namespace janus::passes {

/// The operands that a gradient of `output` can flow on to. A composite operator's parts say it:
/// the target of a loss, say, may only be compared.
/// `functions`: what calls hand gradients on to where that is being found out (control_reach.h).
std::vector<graph::Value*> operands_reached(const graph::Value& output, Paths paths,
                                            const FunctionReach* functions = nullptr);

/// Every value that a gradient of `outputs` flows to, outputs included; within a block, if one is
/// given, and to what it uses from outside. A `gradient` node counts as if all its results depended
/// on all its operands.
/// `functions`: what calls hand gradients on to where that is being found out (control_reach.h).
Reached reached_from(std::span<graph::Value* const> outputs, Paths paths,
                     const graph::Block* within = nullptr,
                     const FunctionReach* functions = nullptr);

}  // namespace janus::passes
