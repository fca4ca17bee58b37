// The iteration space of one run of a kernel, made as simple as it is: dimensions of size 1 left
// out, put in order of memory, neighbours that one stride can walk joined.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/arguments.h"
#include "kernels/loop_nest.h"
#include "kernels/walk.h"

namespace janus::kernels {

/// Sizes and strides on the stack: a run allocates nothing. Dimension 0 is that of the lanes, 1
/// that of the rows, then `reduced_loops` reduced ones, then the rest.
struct Space {
  int rank = 0;  ///< at least 2 once simplified
  int tensors = 0;
  int reduced_loops = 0;
  bool has_other_sizes = false;  ///< see Arguments
  int64_t sizes[kMaxRank + 2];
  int64_t strides[kMaxRank + 2][kMaxTensors];
  bool reduced[kMaxRank + 2];

  /// Reads the arguments of a nest, dimensions of size 1 left out. False if there is nothing to
  /// write.
  bool read(const Arguments& arguments, const LoopNest& nest);
  /// Orders and joins dimensions.
  void simplify(int inputs);
  /// How many elements are combined into one.
  int64_t row_length() const;
  bool lanes_reduced() const { return reduced[0]; }
  /// Whether code counts the dimension itself; the others are counted around it.
  bool is_inside(int dim) const { return dim < 2 + reduced_loops; }
  int64_t element_count() const;
  /// How many elements of a tensor there are.
  int64_t count_of(int tensor) const;

  Walk walk(int tensor) const;

 private:
  void join();
  void sort(int inputs);
  bool runs_inside(int a, int b, int inputs) const;
  void swap(int a, int b);
  void move(int from, int to);
  void insert_one(int place, bool is_reduced);
  void arrange();
};

}  // namespace janus::kernels
