// What is said where making a graph takes too long.
#pragma once

#include <string>

#include "base/check.h"
#include "base/time_budget.h"
#include "graph/graph.h"

namespace janus::frontend {

inline std::string time_spent(const graph::Graph& graph) {
  size_t operations = 0;
  graph::for_each_node(graph.body(), [&](const graph::Node&) { ++operations; });
  return cat("to make a graph takes too long: it had ", operations, " operations after ",
             TimeBudget::seconds(), " s");
}

}  // namespace janus::frontend
