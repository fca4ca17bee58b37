// Call sites of native kernels: which slots become which of a kernel's arguments, with the
// iteration space and the strides found beforehand.
#pragma once

#include <memory>
#include <vector>

#include "execute/code/instruction.h"
#include "execute/values/layout.h"
#include "execute/values/slot.h"
#include "kernels/kernel.h"

namespace janus::execute {

/// The arguments of one call, kept together with the memory that they point into.
class KernelCall {
 public:
  /// `inputs`: layouts by input, null for numbers.
  KernelCall(const Instruction& instruction, const std::vector<const Layout*>& inputs,
             const std::vector<Layout>& outputs);

  /// Operand `index` counts tensor inputs, then outputs.
  void set_data(size_t index, void* data) { tensors_[index].data = data; }
  size_t tensor_count() const { return tensors_.size(); }
  /// Slot of tensor operand `index`.
  uint32_t slot(size_t index) const { return tensor_slots_[index]; }

  /// The node that it computes: a kernel may end the run.
  const graph::Node& node() const { return *node_; }
  /// Finds what follows from sizes and strides, for calls that are to run again and again.
  void place();
  /// Null if it has to be found at each run.
  const kernels::PlacedKernel* placed() const { return placed_.get(); }

  void run(const Slot* slots);
  void read_numbers(const Slot* slots);
  kernels::Arguments arguments() const { return {sizes_, tensors_, numbers_}; }

 private:
  /// Fill sizes_ and strides_.
  void place_by_broadcast(const std::vector<const Layout*>& tensors);
  void place_by_axes(const std::vector<const Layout*>& tensors);

  const kernels::Kernel* kernel_;
  std::unique_ptr<const kernels::PlacedKernel> placed_;
  bool was_placed_ = false;
  const graph::Node* node_;
  std::vector<int64_t> sizes_;
  std::vector<std::vector<int64_t>> strides_;
  std::vector<kernels::TensorOperand> tensors_;
  std::vector<uint32_t> tensor_slots_, number_slots_;
  std::vector<kernels::NumberOperand> numbers_;
  size_t output_count_ = 0;
};

}  // namespace janus::execute
