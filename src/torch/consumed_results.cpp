#include "torch/consumed_results.h"

#include <torch/csrc/autograd/variable.h>

#include "execute/values/container.h"
#include "torch/tensor.h"

namespace janus::torch {

namespace autograd = ::torch::autograd;
using autograd::Edge;
using autograd::variable_list;
using execute::Slot;

namespace {

/// Whether nobody else has it, nor left anything on it.
bool is_free(const NodePointer<ConsumedBackward>& node) {
  return node && node.use_count() == 1 && !has_python_object(*node) && node->pre_hooks().empty() &&
         node->post_hooks().empty() && node->tensor_pre_hooks().empty() &&
         node->retains_grad_hooks().empty();
}

bool fits(const ConsumedBackward& node, const at::Tensor& tensor) {
  const autograd::InputMetadata& metadata = node.input_metadata(0);
  return metadata.is_same_shape(tensor) && metadata.dtype() == tensor.dtype();
}

}  // namespace

variable_list ConsumedBackward::apply(variable_list&&) {
  TORCH_CHECK(false, autograd::ERR_BACKWARD_TWICE);
}

void Consumed::mark(std::span<const Slot> results) {
  if (!result_.name_numbers) return mark(results[result_.index], result_.grad_fn_name);
  Slot numbers = results[*result_.name_numbers];
  for (Slot rest = results[result_.index]; execute::list_size(rest) > 0;
       rest = execute::without_last(rest), numbers = execute::without_last(numbers))
    mark(execute::last_item(rest),
         result_.names[static_cast<size_t>(execute::last_item(numbers).i64())]);
}

void Consumed::mark(const Slot& slot, const std::string& name) {
  if (!slot.is_tensor()) {
    for (Slot rest = slot; execute::list_size(rest) > 0; rest = execute::without_last(rest))
      mark(execute::last_item(rest), name);
    return;
  }
  const at::Tensor tensor = tensor_of(slot);
  autograd::impl::set_gradient_edge(tensor, Edge(node_for(tensor, name), 0));
}

Consumed::Pointer Consumed::node_for(const at::Tensor& tensor, const std::string& name) {
  Pointer& oldest = spare_[next_++ % spare_.size()];
  if (is_free(oldest) && fits(*oldest, tensor) && oldest->name() == name) return oldest;
  oldest = make_node<ConsumedBackward>(name);
  oldest->add_input_metadata(tensor);
  return oldest;
}

}  // namespace janus::torch
