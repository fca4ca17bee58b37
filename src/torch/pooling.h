// Pooling that kernels do not compute, as large windows or sizes that vary: faster than ATen's in
// planes.
#pragma once

#include <memory>

#include "execute/library/library.h"

namespace janus::torch {

/// Maxima of two-dimensional windows; null for other operators.
std::unique_ptr<execute::Operation> bind_pooling(const graph::Node& node,
                                                 const execute::SymbolLookup& symbols);

}  // namespace janus::torch
