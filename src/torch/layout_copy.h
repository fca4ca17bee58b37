// Copies images between planes (contiguous) and channels last.
#pragma once

#include <ATen/core/Tensor.h>

namespace janus::torch {

/// Copies the elements if the two lie so; false if this is not such a copy.
bool copy_between_layouts(const at::Tensor& to, const at::Tensor& from);

}  // namespace janus::torch
