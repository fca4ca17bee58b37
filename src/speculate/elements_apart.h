// Whether the strides of a tensor give each of its elements memory of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace janus::speculate {

/// False as well where that is not certain, and for more dimensions than anybody has.
inline bool are_elements_apart(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  std::array<std::pair<int64_t, int64_t>, 8> steps;  // strides with their sizes
  size_t count = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] <= 1) continue;
    if (count == steps.size()) return false;
    steps[count++] = {strides[d], sizes[d]};
  }
  std::sort(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(count));
  int64_t extent = 1;  // of what lies within one step
  for (size_t i = 0; i < count; ++i) {
    if (steps[i].first < extent) return false;
    extent += (steps[i].second - 1) * steps[i].first;
  }
  return true;
}

}  // namespace janus::speculate
