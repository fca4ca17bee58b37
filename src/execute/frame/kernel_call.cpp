// See kernel_call.h.
#include "execute/frame/kernel_call.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/fault.h"
#include "kernels/placement.h"

namespace janus::execute {

KernelCall::KernelCall(const Instruction& instruction, const std::vector<const Layout*>& inputs,
                       const std::vector<Layout>& outputs)
    : kernel_(instruction.kernel.get()), node_(instruction.node), output_count_(outputs.size()) {
  std::vector<const Layout*> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) {
      number_slots_.push_back(instruction.inputs[i]);
    } else {
      tensor_slots_.push_back(instruction.inputs[i]);
      tensors.push_back(inputs[i]);
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    tensor_slots_.push_back(instruction.outputs[i]);
    tensors.push_back(&outputs[i]);
  }
  if (kernel_->axes().empty())
    place_by_broadcast(tensors);
  else
    place_by_axes(tensors);
  numbers_.resize(number_slots_.size());
  for (const std::vector<int64_t>& strides : strides_)
    tensors_.push_back({nullptr, strides.data()});
}

void KernelCall::place_by_broadcast(const std::vector<const Layout*>& tensors) {
  sizes_ = broadcast_sizes(tensors);
  for (const Layout* tensor : tensors) strides_.push_back(broadcast_strides(*tensor, sizes_));
  for (size_t i = tensors.size() - output_count_; i < tensors.size(); ++i)
    TORCHJANUS_CHECK(tensors[i]->sizes == sizes_, "fused: output ", *tensors[i],
                     " does not fill the iteration space");
}

void KernelCall::place_by_axes(const std::vector<const Layout*>& tensors) {
  const auto axes = kernel_->axes();
  sizes_.assign(kernel_->rank(), -1);
  std::ranges::copy(kernel_->fixed_sizes(), sizes_.begin());
  for (size_t t = 0; t < tensors.size(); ++t) {
    strides_.push_back(kernels::strides_in_space(sizes_.size(), axes[t], kernel_->map(t),
                                                 tensors[t]->strides, tensors[t]->sizes));
    for (size_t d = 0; d < axes[t].size(); ++d) {
      if (axes[t][d] < 0) continue;
      const auto axis = static_cast<size_t>(axes[t][d]);
      if (sizes_[axis] < 0) sizes_[axis] = tensors[t]->sizes[d];
      TORCHJANUS_CHECK(sizes_[axis] == tensors[t]->sizes[d], "fused: dimension ", d, " of ",
                       *tensors[t], " does not fit the iteration space");
    }
  }
  std::ranges::replace(sizes_, int64_t{-1}, int64_t{1});
}

void KernelCall::place() {
  if (!std::exchange(was_placed_, true)) placed_ = kernel_->place(arguments());
}

void KernelCall::read_numbers(const Slot* slots) {
  for (size_t i = 0; i < number_slots_.size(); ++i) {
    const Slot& slot = slots[number_slots_[i]];
    switch (slot.kind()) {
      case Slot::Kind::boolean:
        numbers_[i].i64 = 0;
        numbers_[i].boolean = slot.boolean();
        break;
      case Slot::Kind::i64:
        numbers_[i].i64 = slot.i64();
        break;
      case Slot::Kind::f64:
        numbers_[i].f64 = slot.f64();
        break;
      default:
        TORCHJANUS_CHECK(false, "fused: a number operand is no number");
    }
  }
}

void KernelCall::run(const Slot* slots) {
  read_numbers(slots);
  if (placed_ != nullptr) return placed_->run(arguments());
  if (kernel_->may_fail()) fault_point(Fault::operation);
  kernel_->run(arguments());
}

}  // namespace janus::execute
