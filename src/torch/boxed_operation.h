// Operators by ATen's dispatcher: operands on its stack, for any overload. What we compute
// ourselves falls back on it for operands that our own code is not for.
#pragma once

#include <memory>

#include "execute/library/operation.h"
#include "graph/graph.h"

namespace janus::torch {

std::unique_ptr<execute::Operation> bind_boxed(const graph::Node& node,
                                               const execute::SymbolLookup& symbols);

}  // namespace janus::torch
