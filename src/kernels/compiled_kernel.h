// A kernel as it runs: one loop nest, which goes row by row or, where rows are few or long, over
// the whole space in phases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/compiled_nest.h"
#include "kernels/kernel.h"
#include "kernels/phases.h"

namespace janus::kernels {

class CompiledKernel final : public Kernel {
 public:
  explicit CompiledKernel(LoopNest nest) : by_row_(std::move(nest)), in_phases_(by_row_.nest()) {}

  void run(const Arguments& arguments) const override;
  std::unique_ptr<const PlacedKernel> place(const Arguments& arguments) const override;

  bool may_fail() const override { return by_row_.nest().may_fail(); }
  std::string llvm_text() const override { return by_row_.text(); }
  std::span<const ops::Axes> axes() const override { return by_row_.nest().axes; }
  const ops::IndexMap* map(size_t tensor) const override { return by_row_.nest().map(tensor); }
  std::span<const int64_t> fixed_sizes() const override { return by_row_.nest().sizes; }
  size_t rank() const override { return static_cast<size_t>(by_row_.nest().rank); }

  /// Makes the code for these sizes and strides, so that the first run need not wait. Whether it is
  /// there; where it is only to be found, it may not be.
  bool prepare(const Arguments& arguments, Making making) const;

 private:
  std::vector<NumberOperand> all_numbers(const Arguments& arguments) const;
  void run_placed(const Arguments& arguments) const;

  CompiledNest by_row_;
  Phases in_phases_;
};

}  // namespace janus::kernels
