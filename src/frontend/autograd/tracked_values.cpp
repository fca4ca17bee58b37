#include "frontend/autograd/tracked_values.h"

#include <algorithm>

namespace janus::frontend {

std::vector<graph::Value*> values_of_leaves(const Interpreter& interpreter) {
  std::vector<graph::Value*> values;
  for (const auto* tensors : {&interpreter.entry_tensor_order, &interpreter.made_leaves})
    for (const auto& leaf : *tensors) {
      const std::vector<graph::Value*> tracked = tracked_values(interpreter, *leaf);
      values.insert(values.end(), tracked.begin(), tracked.end());
    }
  return values;
}

std::vector<graph::Value*> tracked_values(const AutogradState& autograd,
                                          const TensorState& tensor) {
  std::vector<graph::Value*> values;
  const auto add = [&](graph::Value* value) {
    if (autograd.differentiable.contains(value) && std::ranges::find(values, value) == values.end())
      values.push_back(value);
  };
  const auto add_both = [&](graph::Value* value) {
    add(value);
    add(autograd.switches.counterpart_or_null(value));
  };
  for (graph::Value* value : tensor.past_values) add_both(value);
  add_both(tensor.value);
  return values;
}

bool is_switched(const AutogradState& autograd, const Tensor& tensor) {
  const auto found = autograd.switches.at_entry.find(&tensor);
  return found != autograd.switches.at_entry.end() && found->second != tensor.requires_grad;
}

}  // namespace janus::frontend
