// Bytes that cross memory, as far as a graph's types tell them. Sizes that only the run knows are
// taken to be kTypicalSize.
#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace janus::graph {

/// What a node reads and writes, each operand once.
int64_t traffic(const Node& node);
/// The sum over the operators in its blocks, if each of them ran by itself.
int64_t traffic_apart(const Node& node);

}  // namespace janus::graph
