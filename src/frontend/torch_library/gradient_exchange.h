// The gradients of models within DistributedDataParallel: a backward() that reaches their
// parameters makes the collectives that the wrappers' reducers would make at that point.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "frontend/core/communication.h"
#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Refuses the call of a wrapper; `module` is the one within.
[[noreturn]] void refuse_model(const Interpreter& interpreter, const python::Object& module,
                               const std::string& why);

/// The model that was called and has this parameter, or this wrapper; null: there is none.
ParallelModel* model_of(AutogradState& autograd, const Tensor& parameter);
ParallelModel* model_of(AutogradState& autograd, PyObject* wrapper);

/// The backward() of `outputs` has accumulated into these leaves: shares what of it belongs to
/// models that were called. `own`: what the program's own code has begun in it. Refuses where
/// eager's order of collectives isn't known.
void share_gradients(Interpreter& interpreter, const CollectivesSince& own,
                     std::span<graph::Value* const> outputs,
                     std::span<const std::shared_ptr<Tensor>> leaves);

/// Refuses if gradients of a model that was called are shared after the run, or if a run that
/// communicates might be repeated for the sake of a gradient.
void check_gradients_shared(Interpreter& interpreter);

/// Reducers know nothing of the run. Behind it, those whose wrappers were called are told what
/// eager would have told them last: to wait for gradients, or that all have come.
void tell_reducers(Interpreter& interpreter);

}  // namespace janus::frontend
