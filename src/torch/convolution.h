// Convolutions by filters of one pixel, as matrix products.
#pragma once

#include <memory>

#include "execute/library.h"

namespace janus::torch {

/// Plain convolutions by filters of one pixel, without border, and their gradients: where images
/// lie channels last, pixels are the rows of a matrix. Null for other operators.
std::unique_ptr<execute::Operation> bind_pixel_convolution(const graph::Node& node,
                                                           const execute::SymbolLookup& symbols);

}  // namespace janus::torch
