// The attribute `.grad` of tensors within a run: reads, assignments, and the writes to tensors of
// before the call when the run is complete.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// `.grad` refers to that from now on.
void set_grad(Tensor& tensor, Value value);

/// tensor.grad; tensor.grad = value
Value read_grad(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor);
void write_grad(const Frames& frames, const std::shared_ptr<Tensor>& tensor, const Value& value);
/// tensor.grad = None, without a look at what it is.
void clear_grad(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor);

/// While code of the program's runs that autograd's engine calls: the backward pass of a Function,
/// hooks of a module. Leaves get their gradients when the whole pass is known, so the `.grad` of
/// one can't be read or written before. A backward pass within that code is one of its own.
class LeavesAreDue {
 public:
  explicit LeavesAreDue(bool due);
  ~LeavesAreDue();
  LeavesAreDue(const LeavesAreDue&) = delete;
  LeavesAreDue& operator=(const LeavesAreDue&) = delete;

 private:
  bool before_;
};

/// Whether the real tensor has a .grad now.
bool had_grad(const Tensor& tensor);

/// Emits the rebinds of `.grad`.
void finish_autograd(Interpreter& interpreter);

}  // namespace janus::frontend
