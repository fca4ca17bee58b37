// Which values a gradient can flow to. For the frontend, on a graph that is still being built, and
// for differentiation itself.
//
// A gradient flows backward from a node's results to those of its operands that are tensors of
// floating or complex dtype. It stops at operators whose derivative is zero by nature
// (Trait::no_gradient), at `detach`, and at values that nothing computes: parameters and `state`.
#pragma once

#include <span>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"
#include "graph/type.h"

namespace janus::passes {

using graph::carries_gradient;

/// Whether a gradient of a result of `node` can flow on to (some of) its operands.
bool passes_gradient(const graph::Node& node);

/// The operands of `node`, and for control flow also the outer values that its blocks, and the
/// functions that it runs, use.
std::vector<graph::Value*> operands(const graph::Node& node);

/// Only the latter.
std::vector<graph::Value*> outer_values(const graph::Node& node);

/// Which ways of a gradient count: those through any side of an `if` and any number of rounds of a
/// loop, or only those that are there however the run goes. What a gradient comes to for certain
/// has one in eager as well; the others may have None there. `certain_but_for_lists`: only those of
/// the latter that no element of a list lies on.
enum class Paths { any, certain, certain_but_for_lists };
class FunctionReach;

/// The operands that a gradient of `output` can flow on to. A composite operator's parts say it:
/// the target of a loss, say, may only be compared.
/// `functions`: what calls hand gradients on to where that is being found out (control_reach.h).
std::vector<graph::Value*> operands_reached(const graph::Value& output, Paths paths,
                                            const FunctionReach* functions = nullptr);

/// The values where gradients of `outputs` end: those that can have a gradient and that no gradient
/// passes through. In order of definition, each once; an output may itself be one.
std::vector<graph::Value*> differentiable_leaves(std::span<graph::Value* const> outputs);

/// Every value that a gradient of `outputs` flows to, outputs included; within a block, if one is
/// given, and to what it uses from outside. A `gradient` node counts as if all its results depended
/// on all its operands.
/// `functions`: what calls hand gradients on to where that is being found out (control_reach.h).
using Reached = std::unordered_set<graph::Value*>;
Reached reached_from(std::span<graph::Value* const> outputs, Paths paths,
                     const graph::Block* within = nullptr,
                     const FunctionReach* functions = nullptr);

/// For each target, whether a gradient of one of `outputs` flows to it. Through `gradient` nodes
/// with {create_graph=true} it follows what they will be expanded to: the gradient of a bias, say,
/// often does not depend on the bias.
std::vector<bool> reachable(std::span<graph::Value* const> outputs,
                            std::span<graph::Value* const> targets, Paths paths = Paths::any);

/// What a node's gradient rule uses of the forward run: flags for its operands and for its results.
struct SavedValues {
  std::vector<bool> inputs;
  std::vector<bool> outputs;
};
/// Found by running the rule. Throws TypeError if the node has no gradient rule.
SavedValues saved_values(const graph::Node& node);

}  // namespace janus::passes
