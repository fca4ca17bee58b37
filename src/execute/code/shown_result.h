// A result whose strides the program sees, so that its layout is part of what a run promises.
#pragma once

#include <cstddef>
#include <optional>

#include "graph/graph.h"

namespace janus::execute {

/// A result of a graph of which a program sees the strides, where the graph alone does not say that
/// its elements lie in order.
struct ShownResult {
  size_t index = 0;
  std::optional<graph::Shape> strides;  ///< nothing: as the operators of the run lay it
};

}  // namespace janus::execute
