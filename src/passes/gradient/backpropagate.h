// Reverse mode differentiation of nodes that are already in a graph: the core of the pass
// `differentiate` and of split_gradient.
//
// Nodes with blocks among them, and calls, get one more result, the frame that their backward run
// takes apart (control_gradient.h, function_versions.h): the one place where a node that stands in
// a graph is edited.
#pragma once

#include <span>
#include <vector>

#include "graph/builder.h"

namespace janus::passes {

/// Appends to `builder` what computes the gradient of `outputs` with respect to `targets` and gives
/// one value for each target, of the target's type; null for a target that no output depends on.
///
/// `seeds`: for each output the gradient to start from, of the output's type; a none-typed value
/// stands for one, and then the output must have one element.
/// Gradients are summed in the order in which eager's engine sums them: uses of a value later in
/// the program first. Throws TypeError where no rule exists.
std::vector<graph::Value*> backpropagate(graph::Builder& builder,
                                         std::span<graph::Value* const> outputs,
                                         std::span<graph::Value* const> seeds,
                                         std::span<graph::Value* const> targets);

/// A tensor of this type with every element equal to `number`.
graph::Value* filled(graph::Builder& builder, const graph::Type& type, double number);

}  // namespace janus::passes
