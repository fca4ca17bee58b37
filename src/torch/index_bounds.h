// Whether what tensors of indices hold lies inside of a dimension.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace janus::torch {

/// Throws unless all indices, of i32 or i64, are from `low` to before `end`. Whether any is below
/// 0.
bool require_between(const at::Tensor& indices, int64_t low, int64_t end);

/// Whether all indices are of i32 or i64, and from `low` to before `end` or equal to `ignored`.
bool all_between(const at::Tensor& indices, int64_t low, int64_t end,
                 std::optional<int64_t> ignored = std::nullopt);

}  // namespace janus::torch
