// Whether what tensors of indices hold lies inside of a dimension.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace janus::torch {

/// Throws unless all indices, of i32 or i64, are from `low` to before `end`. Whether any is below
/// 0.
bool require_between(const at::Tensor& indices, int64_t low, int64_t end);

}  // namespace janus::torch
