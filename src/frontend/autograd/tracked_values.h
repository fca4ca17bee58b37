// The values of the graph in which gradients of leaves may end. A leaf has several: one for each
// time it was written or its requires_grad was switched.
#pragma once

#include <vector>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// All values that gradients may end in.
std::vector<graph::Value*> values_of_leaves(const Interpreter& interpreter);

/// The values of a tensor, now and before writes, that autograd tracks, each once: a gradient that
/// comes to any of them is the tensor's.
std::vector<graph::Value*> tracked_values(const AutogradState& autograd, const TensorState& tensor);

/// Whether the tensor's flag is another one than it was found with.
bool is_switched(const AutogradState& autograd, const Tensor& tensor);

}  // namespace janus::frontend
