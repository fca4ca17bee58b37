// NumPy's arrays that the run makes of tensors. An array shares the tensor's memory, so it is made
// behind the run, of the tensor as the run leaves it, and nothing is computed with it in between.
#pragma once

#include "frontend/values/value.h"

namespace janus::frontend {

/// What `tensor.numpy()` gives.
Value array_of(const std::shared_ptr<Tensor>& tensor);

/// The tensor of such an array; null: the instance is of another class.
std::shared_ptr<Tensor> tensor_of_array(const Instance& instance);

}  // namespace janus::frontend
