// Binds graph nodes to ATen's operators.
#pragma once

#include <memory>

#include "execute/library/operation.h"
#include "graph/graph.h"

namespace janus::torch {

/// Implements Library::bind: an operation of our own where there is one for the node, else a call
/// through the dispatcher.
std::unique_ptr<execute::Operation> bind_operation(const graph::Node& node,
                                                   const execute::SymbolLookup& symbols);

}  // namespace janus::torch
