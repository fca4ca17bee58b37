// The iteration space of one run of a kernel, made as simple as it is: dimensions of size 1 left
// out, put in order of memory, neighbours that one stride can walk joined.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/emit.h"
#include "kernels/kernel.h"

namespace janus::kernels {

/// Sizes and strides on the stack: a run allocates nothing. Dimension 0 is the innermost.
struct Space {
  int rank = 0;  ///< at least 1 once simplified
  int tensors = 0;
  int64_t sizes[kMaxRank];
  int64_t strides[kMaxRank][kMaxTensors];

  /// Reads the arguments, dimensions of size 1 left out. False if the space is empty.
  bool read(const Arguments& arguments);
  /// Orders and joins dimensions. Afterwards there are at least two, of size 1 if need be.
  void simplify(int inputs);
  int64_t element_count() const;

  Walk walk(int tensor) const;

 private:
  void join();
  void sort(int inputs);
  bool runs_inside(int a, int b, int inputs) const;
  void swap(int a, int b);
};

}  // namespace janus::kernels
