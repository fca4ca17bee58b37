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

#include "frontend/value.h"

namespace janus::frontend {

struct GradientSwitches {
  std::unordered_map<const graph::Value*, graph::Value*> twins;  ///< same contents, tracked or not
  std::map<const Tensor*, bool> at_entry;  ///< tensors that were switched, and how they were found
};

/// The value of the other kind with the same contents; null if nothing was switched there.
graph::Value* twin_or_null(const Interpreter& interpreter, const graph::Value* value);

/// Refuses where eager raises.
void switch_requires_grad(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                          bool wanted);

/// The values of a tensor, now and before writes, that autograd tracks, each once: a gradient that
/// comes to any of them is the tensor's.
std::vector<graph::Value*> tracked_values(const Interpreter& interpreter,
                                          const TensorState& tensor);

/// Whether the tensor's flag is another one than it was found with.
bool is_switched(const Interpreter& interpreter, const Tensor& tensor);

/// Writes what the run leaves to the tensors of before the call.
void commit_requires_grad(Interpreter& interpreter);

}  // namespace janus::frontend
