// The tables of callables that the files of this room handle.
#pragma once

#include "frontend/core/known_callables.h"

namespace janus::frontend {

std::span<const SpecialCallable> array_callables();
std::span<const SpecialCallable> attention_callables();
std::span<const SpecialCallable> autograd_callables();
std::span<const SpecialCallable> checkpoint_callables();
std::span<const SpecialCallable> collective_callables();
std::span<const SpecialCallable> custom_gradient_callables();
std::span<const SpecialCallable> foreach_callables();
std::span<const SpecialCallable> fused_callables();
std::span<const SpecialCallable> grad_mode_callables();
std::span<const SpecialCallable> gradient_scaler_callables();
std::span<const SpecialCallable> legacy_tensor_callables();
std::span<const SpecialCallable> module_callables();
std::span<const SpecialCallable> optimizer_callables();
std::span<const SpecialCallable> recurrent_callables();
std::span<const SpecialCallable> sharding_callables();
std::span<const SpecialCallable> shared_gradient_callables();
std::span<const SpecialCallable> tensor_callables();

/// Implements call_decorated() of core/operations.h.
Value call_decorated_function(Interpreter& interpreter, const Known& function,
                              const CallArguments& arguments);

}  // namespace janus::frontend
