// Which results of a graph eager execution's gradient keeps as they came out: written before
// backward() comes, they make it raise.
//
// A result that comes out of a branch or loop may have been computed in one or in another way. Then
// the branch or loop gives one more value, that says it.
//
// Does:       looks through branches, loops and views, up to the operators that computed a value.
// Requires:   no composite operators.
// Must not:   change what the graph computed before.
#pragma once

#include <cstddef>
#include <optional>

#include "graph/graph.h"

namespace janus::passes {

struct IsKept {
  std::optional<bool> known = std::nullopt;
  graph::Value* flag = nullptr;  ///< a boolean of the run, where that is not known
};

/// Whether eager's gradient keeps the value. May add results to branches and loops of the graph.
IsKept is_kept_by_gradient(graph::Graph& graph, const graph::Value& value);

}  // namespace janus::passes
