// The whole compiler on one screen: the passes in order, run by PassRunner (named, timed, verified,
// dumped if changed, switched off by name).
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "passes/runner/pass.h"

namespace janus::passes {

struct PassTime {
  std::string name;
  double milliseconds = 0;
};

/// In which order floats are added up.
enum class Sums {
  in_any_order,
  as_eager,  ///< by the operators that eager calls, where there are such
};

/// From the frontend's graph (composites, `gradient` nodes) to what the executor compiles:
/// decomposed, differentiated, simplified, fused, put in order. `times`, if given, receives one
/// entry a pass. `can_fuse`: what kernels can compute (kernels::can_compile); without it, what the
/// operators' scalar programs promise. TypeError if something has no gradient.
graph::Graph optimise(graph::Graph graph, std::vector<PassTime>* times = nullptr,
                      const CanFuse& can_fuse = {}, Sums sums = Sums::in_any_order);

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
