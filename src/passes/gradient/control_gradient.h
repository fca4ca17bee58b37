// Reverse mode through nodes with blocks.
//
// Each block gets a forward version, which gives a frame with what the backward run needs beside
// its results, and a backward version, a block that takes the frame apart:
//
//   %y, %f = if %c {            ...  %f0 = frame_pack ...   yield %y0, %f0   } else { likewise }
//   %dx    = if %c {            ...  frame_unpack %f        yield %dx0       } else { likewise }
//
//   %y, %s = while %x, (empty list) { ... } do { ... %s1 = list_push %s0, (frame)  yield %y0, %s1 }
//   %dx    = while %s, %dy { (list_size %s) > 0 } do { ... list_pop ... yield ... }
//
// Frames hold nothing that can be made again at no cost: constants, and views of what is held. A
// frame that would be empty is left out; a loop then only counts its iterations. Gradients of
// values from outside of a loop are carried by the backward loop, which adds to them in each
// iteration.
//
// The backward versions are ordinary nodes, so they can be differentiated in turn: gradients of
// frames and lists are frames and lists of gradients (ops/container.cpp).
#pragma once

#include "graph/graph.h"
#include "passes/gradient/function_versions.h"
#include "passes/gradient/gradient_sums.h"

namespace janus::passes {

/// Whether the node has blocks, or is a call, and so is differentiated here; then the gradients of
/// what it uses are in `sums`. `versions`: of the functions that calls run in this gradient.
/// TypeError if there is no gradient.
bool differentiate_control(graph::Node& node, GradientSums& sums, BlockDifferentiator& blocks,
                           FunctionVersions& versions);

}  // namespace janus::passes
