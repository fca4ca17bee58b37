// Which results of a call autograd keeps for its gradient, as `y` of `y = exp(x)`: whoever writes
// to one in place has backward() raise.
#pragma once

#include <ATen/core/Tensor.h>

namespace janus::torch {

/// Whether backward() raises once the result, of a call that autograd watched, is written. True as
/// well where that can't be tried.
bool is_saved_result(const at::Tensor& result);

}  // namespace janus::torch
