// What a kernel is called with: sizes of its iteration space, its tensors as first elements and
// strides, and its numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace janus::kernels {

/// A `fused` node has at most so many dimensions, and so many tensors as inputs and outputs.
inline constexpr size_t kMaxRank = 16;
inline constexpr size_t kMaxTensors = 32;

/// A tensor operand: its first element, and strides in elements for each dimension of the iteration
/// space (0 where it is broadcast); where it is read by a map, as strides_in_space() gives them.
struct TensorOperand {
  void* data = nullptr;
  const int64_t* strides = nullptr;
};

/// A number operand (inputs of type i64, f64, bool).
union NumberOperand {
  int64_t i64;
  double f64;
  bool boolean;
};

struct Arguments {
  std::span<const int64_t> sizes;          ///< of the iteration space
  std::span<const TensorOperand> tensors;  ///< tensor inputs in order, then outputs
  std::span<const NumberOperand> numbers;  ///< number inputs in order
  bool has_other_sizes = false;            ///< the sizes stand for others, not known yet
};

}  // namespace janus::kernels
