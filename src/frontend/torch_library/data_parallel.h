// Training steps with DistributedDataParallel as one graph.
//
// The call of the wrapper is that of the module within, behind the broadcast of its buffers. A
// backward() that reaches its parameters then makes the collectives that the wrapper's reducer
// would make at that point: the same buckets in the same order, so that other processes may run the
// same step eagerly. docs/distributed.md says what those are.
#pragma once

#include <memory>
#include <span>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// DistributedDataParallel.forward
Value call_data_parallel(Interpreter& interpreter, const CallArguments& arguments);

/// The model that was called and has this parameter; null: there is none.
ParallelModel* model_of(AutogradState& autograd, const Tensor& parameter);

/// A backward() has accumulated into these leaves: shares what of it belongs to a model that was
/// called. Refuses where eager's order of collectives isn't known.
void share_gradients(Interpreter& interpreter, std::span<const std::shared_ptr<Tensor>> leaves);

/// Refuses if gradients of a model that was called are shared after the run, or if the run might be
/// repeated for the sake of a gradient.
void check_gradients_shared(Interpreter& interpreter);

}  // namespace janus::frontend
