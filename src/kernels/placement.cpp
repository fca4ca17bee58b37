// See placement.h.
#include "kernels/placement.h"

namespace janus::kernels {

namespace {

std::vector<int64_t> strides_along(size_t rank, const ops::Axes& axes,
                                   std::span<const int64_t> strides) {
  std::vector<int64_t> result(rank, 0);
  for (size_t d = 0; d < strides.size(); ++d)
    if (axes[d] >= 0) result[static_cast<size_t>(axes[d])] = strides[d];
  return result;
}

std::vector<int64_t> strides_by(const ops::IndexMap& map, std::span<const int64_t> strides,
                                std::span<const int64_t> sizes) {
  std::vector<int64_t> result(map.space_rank + 1, 0);
  for (size_t d = 0; d < strides.size(); ++d) {
    for (size_t j = 0; j < map.space_rank; ++j) result[j] += map.factor(d, j) * strides[d];
    result.back() += map.offset[d] * strides[d];
  }
  result.insert(result.end(), strides.begin(), strides.end());
  result.insert(result.end(), sizes.begin(), sizes.end());
  return result;
}

}  // namespace

std::vector<int64_t> strides_in_space(size_t rank, const ops::Axes& axes, const ops::IndexMap* map,
                                      std::span<const int64_t> strides,
                                      std::span<const int64_t> sizes) {
  return map == nullptr ? strides_along(rank, axes, strides) : strides_by(*map, strides, sizes);
}

}  // namespace janus::kernels
