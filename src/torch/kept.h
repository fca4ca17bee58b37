// What an autograd node keeps of the forward run until backward() comes.
#pragma once

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "execute/values/slot.h"
#include "torch/tensor.h"
#include "torch/version.h"

namespace janus::torch {

/// A value kept from the forward run: a tensor that autograd checks for changes, a number, or a
/// frame of such values. Copies share the tensor, which is freed when all of them have released it.
class Kept {
 public:
  /// `is_checked`: autograd raises if it is changed before it is used.
  Kept(const execute::Slot& slot, bool is_output, bool is_checked = true) {
    if (slot.is_tensor() && is_checked) {
      tensor_ = std::make_shared<::torch::autograd::SavedVariable>(tensor_of(slot), is_output);
      is_tensor_ = true;
    } else {
      plain_ = slot;
    }
  }

  execute::Slot get(const NodePointer<::torch::autograd::Node>& saved_for) const {
    TORCH_CHECK(!is_released_, ::torch::autograd::ERR_BACKWARD_TWICE);
    return is_tensor_ ? slot_of(tensor_->unpack(saved_for)) : plain_;
  }
  /// Whether it takes Python's lock to copy or to drop it.
  bool is_pythons() const {
    using Kind = execute::Slot::Kind;
    return plain_.kind() == Kind::object || plain_.kind() == Kind::container;
  }
  void release() {
    tensor_.reset();
    is_released_ = is_tensor_ || is_pythons() || plain_.is_tensor();
    if (is_released_) plain_.clear();
  }

 private:
  std::shared_ptr<::torch::autograd::SavedVariable> tensor_;
  execute::Slot plain_;
  bool is_tensor_ = false, is_released_ = false;
};

/// Whether one of them takes Python's lock.
inline bool are_pythons(const std::vector<Kept>& all) {
  return std::any_of(all.begin(), all.end(), [](const Kept& one) { return one.is_pythons(); });
}

}  // namespace janus::torch
