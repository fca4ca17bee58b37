// Splits a gradient into a forward and a backward graph, for a backward() that the user calls
// outside.
//
// The gradient is appended to a copy of the graph, from seeds that are new inputs. What was there
// before is the forward run, what was appended the backward run; values that go from one to the
// other are saved. So exactly what gradient rules use is saved. Three things are not: constants,
// tensors that depend on nothing, and views of something that is saved anyway; the backward run
// makes those again.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace janus::passes {

/// Forward and backward run of a graph whose differentiable results leave it (backward() is called
/// outside).
struct SplitGradient {
  graph::Graph forward;  ///< results: those of the original, then the saved values
  /// Inputs: saved values, then one gradient for each differentiable result, of its type. Results:
  /// the gradient of each differentiable input, then of each differentiable cell.
  graph::Graph backward;
  size_t saved_count = 0;
};
/// `differentiable_results`, `differentiable_inputs`: indices; cells by name. At the results `cuts`
/// gradients end: those of them come behind the cells'. Both graphs still have to be optimised. The
/// backward graph can be split again: higher order. A saved value may be a number: an i64 named
/// like a dimension gives that dimension.
SplitGradient split_gradient(const graph::Graph& graph,
                             const std::vector<size_t>& differentiable_results,
                             const std::vector<size_t>& differentiable_inputs,
                             const std::vector<std::string>& differentiable_cells,
                             const std::vector<size_t>& cuts = {});

/// Lets gradients end at these results, in place: all that is computed of one goes on from another
/// value, through which no gradient passes. Gives those values.
std::vector<graph::Value*> cut_gradients(graph::Graph& graph, const std::vector<size_t>& results);

}  // namespace janus::passes
