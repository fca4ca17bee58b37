// Copies tensors into another order in memory: images between planes (contiguous) and channels
// last, transposed matrices, heads of an attention.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "execute/library/library.h"

namespace janus::torch {

/// Copies the elements if the two lie so; false if this is not such a copy.
bool copy_between_layouts(const at::Tensor& to, const at::Tensor& from);

/// `contiguous` and `reshape`; null for other operators.
std::unique_ptr<execute::Operation> bind_layout_copy(const graph::Node& node,
                                                     const execute::SymbolLookup& symbols);

}  // namespace janus::torch
