// The whole compiler on one screen: the passes in order, run by PassRunner (named, timed, verified,
// dumped if changed, switched off by name).
#pragma once

#include <vector>

#include "graph/graph.h"
#include "passes/fusion/can_fuse.h"
#include "passes/runner/runner.h"

namespace janus::passes {

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

}  // namespace janus::passes
