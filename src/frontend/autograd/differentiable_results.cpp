#include "frontend/autograd/differentiable_results.h"

#include <algorithm>

#include "frontend/autograd/custom_gradient.h"
#include "frontend/autograd/gradient_nodes.h"
#include "frontend/autograd/gradients.h"
#include "frontend/tensors/grad_fn_name.h"

namespace janus::frontend {

bool is_consumed(const InterpreterState& state, const std::vector<graph::Value*>& values) {
  return std::ranges::any_of(gradient_nodes(values), [&](const graph::Node* node) {
    return state.history.consumed.contains(node) &&
           graph::saves_of(*node->op) != graph::Saves::nothing;
  });
}

void note_differentiable_result(Interpreter& interpreter, const Tensor& tensor, size_t index) {
  speculate::Generated::DifferentiableResult result;
  result.result = index;
  result.grad_fn_name = grad_fn_name(tensor);
  const std::vector<graph::Value*> values =
      beyond_custom_gradients(interpreter, {tensor.value}, result.consumed);
  result.consumed = result.consumed || is_consumed(interpreter, values);
  if (!result.consumed) {
    check_no_custom_gradient(interpreter, tensor.value);
    check_all_results_used(interpreter, values);
  }
  interpreter.output().differentiable_results.push_back(std::move(result));
}

}  // namespace janus::frontend
