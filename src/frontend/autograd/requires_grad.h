// requires_grad of leaves, switched on and off in the run: frozen critics, inputs whose gradient is
// wanted.
//
// A leaf has one value that autograd tracks and one that it does not: switching changes which of
// the two the operators behind it use. Both have the same contents. What Python sees of a tensor of
// before the call changes at the end of the run.
#pragma once

#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "frontend/values/value.h"

namespace janus::frontend {

/// Writes what the run leaves to the tensors that existed before the call.
void commit_requires_grad(Interpreter& interpreter);

/// Implements switch_requires_grad() of core/operations.h.
void set_requires_grad(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                       bool wanted);

}  // namespace janus::frontend
