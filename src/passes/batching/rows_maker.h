// Builds `rows` nodes: deferred, batched calls that compute something for many invocations at once.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "passes/batching/recursion.h"
#include "passes/structure/renew.h"

namespace janus::passes {

/// Appends a `rows` node to `block` that computes `members`, nodes of it that are put off. What
/// they gave to others, for which `is_needed` says yes, is in `now` with what is to be used
/// instead.
graph::Node* make_rows(graph::Graph& graph, Recursion& recursion, graph::Block& block,
                       const std::vector<graph::Node*>& members,
                       const std::function<bool(const graph::Value*)>& is_needed, Renewed& now);

/// What a `rows` node computes for many rows, but for the names of values: two nodes for which this
/// is the same text compute the same.
std::string description_of_rows(const graph::Node& rows);

}  // namespace janus::passes
