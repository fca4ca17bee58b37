// How much of a loop over elements is worth another thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace janus::torch {

/// For parallel_for: how many indices go together at least, where one stands for so many elements.
inline int64_t grain(int64_t elements_of_one) {
  constexpr int64_t least_elements = 1 << 14;
  return std::max<int64_t>(1, least_elements / std::max<int64_t>(1, elements_of_one));
}

}  // namespace janus::torch
