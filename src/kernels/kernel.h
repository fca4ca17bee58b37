// Native code of one `fused` node: a loop nest over an iteration space, compiled in-process.
//
// A `fused` node's block computes element-wise operators and reductions; its parameters are the
// node's inputs, its results the node's outputs. The iteration space is the broadcast of the
// inputs' shapes, or, where there are reductions, what they reduce. Inputs are read and outputs
// written through strides, so broadcast inputs and views need no copy. Sizes and strides are
// run-time arguments: one kernel serves every size.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/arguments.h"
#include "ops/reindex.h"

namespace janus::kernels {

/// A kernel over a space that stays as it is: what follows from sizes and strides is found once.
class PlacedKernel {
 public:
  virtual ~PlacedKernel() = default;
  /// As Kernel::run(), with the sizes and strides for which it was made.
  virtual void run(const Arguments& arguments) const = 0;
  /// Elements times what one costs; and in how many pieces at most that may be shared out.
  virtual int64_t work() const = 0;
  virtual int64_t pieces() const = 0;
  /// Computes the pieces from `begin` to before `end`, on this thread.
  virtual void run_pieces(const Arguments& arguments, int64_t begin, int64_t end) const = 0;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Runs over the whole space, on several threads if it is large. Outputs may be the same memory
  /// as inputs with equal strides (in place); no other overlap is allowed. Throws
  /// std::out_of_range where an index that a tensor holds is outside of what it is read from.
  virtual void run(const Arguments& arguments) const = 0;
  /// The same for many runs over one space, for as long as the kernel lives. Null: it takes more
  /// than one walk, or may fail.
  virtual std::unique_ptr<const PlacedKernel> place(const Arguments& arguments) const = 0;
  /// Whether it reads at indices that tensors hold.
  virtual bool may_fail() const = 0;
  /// Where there are reductions or maps: for each tensor, the dimension of the space along which
  /// each of its dimensions runs, -1 where its size is 1 or a map says where it is read. Else none:
  /// tensors are broadcast to the space.
  virtual std::span<const std::vector<int>> axes() const = 0;
  /// The map by which a tensor is read; null: it is read or written at the point itself.
  virtual const ops::IndexMap* map(size_t tensor) const = 0;
  /// Sizes of the dimensions of the space that no tensor tells, -1 for others; or none.
  virtual std::span<const int64_t> fixed_sizes() const = 0;
  /// Dimensions of the space, where there are axes.
  virtual size_t rank() const = 0;
  virtual std::string llvm_text() const = 0;
};

}  // namespace janus::kernels
