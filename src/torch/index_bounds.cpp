// See index_bounds.h.
#include "torch/index_bounds.h"

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

}  // namespace

bool require_between(const at::Tensor& indices, int64_t low, int64_t end) {
  at::Tensor once = indices;  // what is expanded is looked at once
  for (int64_t d = 0; d < indices.dim(); ++d)
    if (indices.size(d) > 1 && indices.stride(d) == 0) once = once.narrow(d, 0, 1);
  once = once.contiguous();
  return once.scalar_type() == at::kInt
             ? require_between(once.const_data_ptr<int32_t>(), once.numel(), low, end)
             : require_between(once.const_data_ptr<int64_t>(), once.numel(), low, end);
}

}  // namespace janus::torch
