// Loop nests to LLVM text: one function that walks two dimensions of the space and the reduced
// ones, the innermost by vectors, with the last, incomplete vector masked. An element's value does
// not depend on where in a vector it falls, so neither size, strides nor threads change the results
// of elementwise nests.
//
// The function, whatever the nest:
//
//   void kernel(ptr tensors, ptr strides, ptr sizes, ptr numbers, ptr extents)
//
// tensors: each tensor's first element. sizes: of the dimension of the lanes, of the rows, and of
// the reduced dimensions that are left, from the inside. strides: for each of these dimensions
// kMaxTensors numbers, in elements. numbers: 8 bytes each. extents: the sizes of the space before
// anything was joined.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/loop_nest.h"

namespace janus::kernels {

/// How a tensor is walked along the dimension of the lanes. Code is made for one combination of
/// these.
enum class Walk : uint8_t {
  broadcast,   ///< stride 0: one element for the whole row
  contiguous,  ///< stride 1
  strided,     ///< any stride
};

/// The order in which the space is walked.
struct Order {
  std::vector<Walk> walks;  ///< one for each tensor
  int reduced_loops = 0;    ///< reduced dimensions beside that of the lanes
  bool lanes_reduced =
      false;                ///< the lanes lie along a reduced dimension: a row is combined into one
  int registers = 1;        ///< vectors that are computed side by side, as one wider vector
  bool keeps = false;       ///< a row is short enough to keep what later passes need of it
  uint32_t past_cache = 0;  ///< bit t: vectors of output t, which begin where one of the
                            ///< processor's may begin, are stored past the cache
  uint32_t ahead = 0;       ///< bit t: tensor t is fetched from memory some time before it is read
};

/// Of the cache.
inline constexpr int64_t kLineBytes = 64;

struct Target {
  int vector_bytes = 64;
  /// Whether a function of that name can be linked (Sleef's).
  std::function<bool(std::string_view)> has_function;
};

/// Outputs that run along the lanes must not be walked as `broadcast`.
std::string emit(const LoopNest& nest, const Order& order, const Target& target);

/// Whether the nest's functions have code for vectors of any width, those apart that are computed
/// once for a row where lanes lie `along_rows`.
bool can_widen(const LoopNest& nest, const Target& target, bool along_rows);

}  // namespace janus::kernels
