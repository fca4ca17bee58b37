// The search for what a gradient reaches, as seen by those who follow it through one kind of node.
//
// Control flow, lists and composite operators have graphs within them, in which the search goes on.
#pragma once

#include <span>

#include "graph/graph.h"
#include "passes/reach/function_reach.h"
#include "passes/reach/paths.h"

namespace janus::passes {

class Search {
 public:
  virtual ~Search() = default;
  /// As the function of that name (reachability.h).
  virtual Reached reached_from(std::span<graph::Value* const> outputs, Paths paths,
                               const graph::Block* within,
                               const FunctionReach* functions) const = 0;
};

}  // namespace janus::passes
