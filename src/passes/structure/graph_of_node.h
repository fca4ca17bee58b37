// One node as a graph of its own, for passes and questions that take a graph.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

/// A graph of only that node: its operands are inputs (constants stay constants), its results
/// results.
graph::Graph graph_of(const graph::Node& node);

/// The constant that an operand is; null for others.
const graph::Node* constant_behind(const graph::Value& operand);

}  // namespace janus::passes
