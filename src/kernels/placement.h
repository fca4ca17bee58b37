// Which elements of its tensors a kernel reads that it does not read at the points themselves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernel.h"
#include "ops/index_space.h"

namespace janus::kernels {

/// The map by which a tensor is read; null: it is read or written at the point itself.
const ops::IndexMap* map_of(const Kernel& kernel, size_t tensor);

/// Sizes of the dimensions that no tensor tells, -1 for others; or none.
std::span<const int64_t> fixed_sizes(const Kernel& kernel);

/// Strides in a space of that rank of a tensor that lies along these axes, or is read by a map;
/// with a map there follows how far from the tensor's first element that is which is read at point
/// 0.
std::vector<int64_t> strides_in_space(size_t rank, const ops::Axes& axes, const ops::IndexMap* map,
                                      std::span<const int64_t> strides);

}  // namespace janus::kernels
