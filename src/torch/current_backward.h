// The backward() that autograd's engine runs on this thread: where it goes, and who looks on.
#pragma once

#include <torch/csrc/autograd/function.h>

namespace janus::torch {

/// Whether anybody asks for the gradient that comes to a result: by hooks, or autograd.grad.
bool is_looked_at(const ::torch::autograd::Edge& result);

/// Whether it goes there: it may be for some inputs only.
bool is_on_the_way(const ::torch::autograd::Edge& edge);

}  // namespace janus::torch
