// Nodes that a gradient runs through.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace janus::frontend {

struct AutogradState;

/// Whether the nodes of functions that are called count as well.
enum class Functions { entered, left_out };

/// Adds what is computed in the blocks of a branch or loop, and in the functions that it calls.
void add_inner_nodes(const graph::Node& node, Functions functions,
                     std::vector<const graph::Node*>& nodes);

/// The nodes that a gradient of `outputs` runs through; of a branch or loop all that are in it.
std::vector<const graph::Node*> gradient_nodes(const std::vector<graph::Value*>& outputs,
                                               Functions functions = Functions::entered);

/// Whether one of the values is of a tensor that eager's autograd tracks.
bool any_differentiable(const AutogradState& autograd, const std::vector<graph::Value*>& values);

}  // namespace janus::frontend
