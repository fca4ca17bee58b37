// `tensor.data = value`: the tensor is on other memory from then on.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// `tensor.data`: the same memory, out of autograd's sight.
Value data_of(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor);

/// `tensor.data = value`. What has views of the tensor keeps the memory that it had.
void replace_data(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                  const Value& value);

/// Emits the rebind of a pre-existing tensor whose `data` was replaced.
void commit_data(Interpreter& interpreter, Tensor& tensor);

}  // namespace janus::frontend
