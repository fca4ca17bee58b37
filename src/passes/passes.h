// The passes. What each does, requires, guarantees and must not do stands at the top of its file.
#pragma once

#include "graph/graph.h"
#include "passes/runner/pass.h"

namespace janus::passes {

graph::Graph decompose(const graph::Graph& graph);
graph::Graph pool_first(const graph::Graph& graph);
graph::Graph map_indices(const graph::Graph& graph);
graph::Graph map_reductions(const graph::Graph& graph);
graph::Graph hoist(const graph::Graph& graph);
graph::Graph hoist_rows(const graph::Graph& graph);
graph::Graph differentiate(const graph::Graph& graph);
graph::Graph fold(const graph::Graph& graph);
graph::Graph simplify(const graph::Graph& graph);
graph::Graph simplify_control(const graph::Graph& graph);
graph::Graph leave_undefined(const graph::Graph& graph);
graph::Graph merge_common(const graph::Graph& graph);
graph::Graph remove_dead(const graph::Graph& graph);
graph::Graph batch(const graph::Graph& graph);
graph::Graph sum_products(const graph::Graph& graph);
graph::Graph stack_products(const graph::Graph& graph);
graph::Graph widen_products(const graph::Graph& graph);
graph::Graph turn_matrices(const graph::Graph& graph);
graph::Graph small_norms(const graph::Graph& graph, const CanFuse& can_fuse);
graph::Graph schedule(const graph::Graph& graph);
graph::Graph fuse(const graph::Graph& graph, const CanFuse& can_fuse);
/// `fuse` for the operators alone that only kernels can compute.
graph::Graph wrap(const graph::Graph& graph, const CanFuse& can_fuse);

/// What `fuse` asks when nobody says what kernels can do: elementwise with a scalar program, and
/// dtypes that kernels compute with.
bool can_fuse_by_traits(const graph::Node& node);

}  // namespace janus::passes
