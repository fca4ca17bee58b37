// How code walks over the iteration space: the order of its loops, and each tensor's stride along
// the vector lanes. Code is made for one such order.
#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace janus::kernels
