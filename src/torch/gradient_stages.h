// Which results of a run lie on the way of each other's gradients.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "graph/graph.h"
#include "torch/gradient_graph.h"

namespace janus::torch {

/// Results none of which lies on the way of another's gradient, and those that do. What one of them
/// frees, another's backward() needs as well.
struct Stage {
  std::vector<GradientGraph::Result> results;
  std::vector<size_t> cuts;
  std::set<const graph::Node*> nodes;  ///< that their gradients go through
};

/// For each result how many others lie one behind the other on the way of its gradient: the stages
/// by that number.
std::vector<Stage> stages_of(const graph::Graph& graph,
                             const std::vector<GradientGraph::Result>& results);

}  // namespace janus::torch
