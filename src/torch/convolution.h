// Convolutions and their gradients, by the library or as matrix products, whichever is faster.
#pragma once

#include <memory>

#include "execute/library/library.h"

namespace janus::torch {

/// Plain convolutions of one or two dimensions (one group, not transposed) and their gradients;
/// null for other operators.
std::unique_ptr<execute::Operation> bind_convolution(const graph::Node& node,
                                                     const execute::SymbolLookup& symbols);

}  // namespace janus::torch
