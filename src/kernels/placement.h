// Where in the memory of a tensor a kernel reads and writes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/index_space.h"

namespace janus::kernels {

/// Strides in a space of that rank of a tensor that lies along these axes, or is read by a map
/// (else null); with a map there follows how far from the tensor's first element that is which is
/// read at point 0, and the tensor's own strides and sizes.
std::vector<int64_t> strides_in_space(size_t rank, const ops::Axes& axes, const ops::IndexMap* map,
                                      std::span<const int64_t> strides,
                                      std::span<const int64_t> sizes);

}  // namespace janus::kernels
