// How much of a loop over elements is worth another thread.
#pragma once

#include <cstdint>

#include "graph/cost.h"
#include "kernels/sharing.h"

namespace janus::torch {

/// For parallel_for over `count` indices: how many go together at least, where each stands for so
/// many elements that are moved or added up.
inline int64_t grain(int64_t count, int64_t elements_of_one) {
  return kernels::least_pieces(count * elements_of_one * graph::kInstructionsOfMoved, count);
}

}  // namespace janus::torch
