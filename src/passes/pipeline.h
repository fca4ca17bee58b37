// The whole compiler on one screen: the passes in order, run by PassRunner (named, timed, verified,
// dumped if changed, switched off by name).
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace janus::passes {

struct PassTime {
  std::string name;
  double milliseconds = 0;
};

/// From the frontend's graph (composites, `gradient` nodes) to what the executor compiles:
/// decomposed, differentiated, simplified, fused. `times`, if given, receives one entry a pass.
graph::Graph optimise(graph::Graph graph, std::vector<PassTime>* times = nullptr);

/// Forward and backward run of a graph whose differentiable results leave it (backward() is called
/// outside).
struct SplitGradient {
  graph::Graph forward;   ///< results: those of the original, then the saved values
  graph::Graph backward;  ///< inputs: saved values, then one gradient for each differentiable
                          ///< result (may be none-typed `zeros`) results: gradient of each
                          ///< differentiable input, then of each differentiable cell
  size_t saved_count = 0;
};
/// `differentiable_results`, `differentiable_inputs`: indices; cells by name. Both graphs still
/// have to be optimised. The backward graph can be split again: higher order.
SplitGradient split_gradient(const graph::Graph& graph,
                             const std::vector<size_t>& differentiable_results,
                             const std::vector<size_t>& differentiable_inputs,
                             const std::vector<std::string>& differentiable_cells);

}  // namespace janus::passes
