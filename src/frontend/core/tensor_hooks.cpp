#include "frontend/core/tensor_hooks.h"

namespace janus::frontend {

bool has_hooks(const HooksOfTensors& hooks, const Tensor& tensor, const graph::Value* value) {
  const auto known = hooks.find(&tensor);
  return known != hooks.end() && known->second != nullptr && known->second->value == value;
}

}  // namespace janus::frontend
