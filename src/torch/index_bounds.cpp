// See index_bounds.h.
#include "torch/index_bounds.h"

#include <algorithm>

#include "torch/version.h"

namespace janus::torch {

namespace {

template <class Index>
bool require_between(const Index* indices, int64_t count, int64_t low, int64_t end) {
  bool is_any_negative = false;
  for (int64_t i = 0; i < count; ++i) {
    TORCH_CHECK_INDEX(indices[i] >= low && indices[i] < end, "index ", indices[i],
                      " is out of bounds for a dimension of size ", end);
    is_any_negative |= indices[i] < 0;
  }
  return is_any_negative;
}

template <class Index>
bool all_between(const Index* indices, int64_t count, int64_t low, int64_t end,
                 std::optional<int64_t> ignored) {
  return std::all_of(indices, indices + count, [&](Index index) {
    return (index >= low && index < end) || index == ignored;
  });
}

/// In order; what is expanded is there once.
at::Tensor each_once(const at::Tensor& indices) {
  at::Tensor once = indices;
  for (int64_t d = 0; d < indices.dim(); ++d)
    if (indices.size(d) > 1 && indices.stride(d) == 0) once = once.narrow(d, 0, 1);
  return once.contiguous();
}

}  // namespace

bool require_between(const at::Tensor& indices, int64_t low, int64_t end) {
  const at::Tensor once = each_once(indices);
  return once.scalar_type() == at::kInt
             ? require_between(elements_of<int32_t>(once), once.numel(), low, end)
             : require_between(elements_of<int64_t>(once), once.numel(), low, end);
}

bool all_between(const at::Tensor& indices, int64_t low, int64_t end,
                 std::optional<int64_t> ignored) {
  const at::Tensor once = each_once(indices);
  if (once.scalar_type() == at::kInt)
    return all_between(elements_of<int32_t>(once), once.numel(), low, end, ignored);
  return once.scalar_type() == at::kLong &&
         all_between(elements_of<int64_t>(once), once.numel(), low, end, ignored);
}

}  // namespace janus::torch
