// Hooks of tensors that the run made.
#pragma once

#include <memory>
#include <unordered_map>

#include "frontend/values/value.h"

namespace janus::frontend {

/// The hooks of a tensor made in the run, and the value that it has behind them.
struct TensorHooks {
  graph::Value* value = nullptr;
  std::shared_ptr<Sequence> hooks;  ///< in the order in which they came; null: removed
};

/// By tensor.
using HooksOfTensors = std::unordered_map<const Tensor*, std::shared_ptr<TensorHooks>>;

/// Whether hooks were registered on the tensor as it is with that value.
bool has_hooks(const HooksOfTensors& hooks, const Tensor& tensor, const graph::Value* value);

}  // namespace janus::frontend
