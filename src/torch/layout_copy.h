// Copies images between planes (contiguous) and channels last, and matrices whose columns lie in
// order.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>

#include "execute/library.h"

namespace janus::torch {

/// Copies the elements if the two lie so; false if this is not such a copy.
bool copy_between_layouts(const at::Tensor& to, const at::Tensor& from);

/// `contiguous` of a matrix; null for other operators.
std::unique_ptr<execute::Operation> bind_layout_copy(const graph::Node& node);

}  // namespace janus::torch
