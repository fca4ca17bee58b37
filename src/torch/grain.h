// How much of a loop over elements is worth another thread.
#pragma once

#include <cstdint>

#include "kernels/sharing.h"

namespace janus::torch {

/// For parallel_for over `count` indices: how many go together at least, where each stands for so
/// many elements that are moved or added up.
inline int64_t grain(int64_t count, int64_t elements_of_one) {
  constexpr int64_t work_of_element = 16;  // not all of it is done by vectors
  return kernels::least_pieces(count * elements_of_one * work_of_element, count);
}

}  // namespace janus::torch
