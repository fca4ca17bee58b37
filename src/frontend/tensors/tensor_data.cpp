// The tensor whose `data` is replaced stays the owner of its memory in this interpreter, so that it
// is written and read as any other: what it was given becomes a view of it, and what were views of
// it become those of a tensor that has the memory from before.
#include "frontend/tensors/tensor_data.h"

#include "base/mutation.h"
#include "frontend/core/cells.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/strides.h"
#include "ops/list.h"

namespace janus::frontend {

Value data_of(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor) {
  graph::Node* node = interpreter.builder().append(op::detach, {read(interpreter, *tensor)});
  auto data = make_tensor(interpreter, node->output(), false);
  data->base = tensor;
  tensor->is_viewed = true;
  data->view_node = node;
  data->seen_version = tensor->version;
  data->untracked = true;
  data->strides = tensor->strides;
  data->uncertain_alias = tensor->uncertain_alias;
  return data;
}

namespace {

/// Whether nothing but this tensor and its views has the memory, as far as the run knows.
bool has_own_memory(const Tensor& tensor) {
  return memory_of(&tensor) == &tensor && !tensor.uncertain_alias && !tensor.is_borrowed &&
         tensor.list_memory == nullptr && !has_live_alias(tensor);
}

void check_replaceable(Interpreter& interpreter, const Tensor& tensor, const Tensor* value) {
  const auto refuse = [&](const char* why) {
    interpreter.refuse(ReasonCode::heap_write, cat("the attribute data of a tensor: ", why));
  };
  if (value == nullptr) refuse("it is set to what is no tensor");
  if (value->source != nullptr || !has_own_memory(*value))
    refuse("it is set to what is not computed in the run, or is a view");
  if (value->requires_grad) refuse("it is set to what requires a gradient");
  if (!has_own_memory(tensor) || !tensor.is_leaf) refuse("the tensor is a view, or no leaf");
  if (value->value->type != tensor.value->type || !is_contiguous(*value) || !is_contiguous(tensor))
    refuse("it changes its shape, its dtype or how it lies in memory");
  if (interpreter.made_in_inference || interpreter.output().environment.inference_mode)
    interpreter.refuse(ReasonCode::mode_active, "the attribute data of a tensor of inference mode");
}

/// Views of the tensor stay on the memory that it leaves.
void leave_memory(Tensor& tensor) {
  auto left = std::make_shared<Tensor>();
  static_cast<TensorState&>(*left) = tensor;
  left->source = nullptr;
  left->grad = nullptr;
  left->grad_replaced = left->grad_unread = left->data_replaced = false;
  // It existed before the call: somebody else may have that memory too.
  left->uncertain_alias = left->is_borrowed = tensor.source != nullptr && !tensor.data_replaced;
  for (Changeable* each = Changeable::first(); each != nullptr; each = each->next_changeable()) {
    auto* view = dynamic_cast<Tensor*>(each);
    if (view != nullptr && view->base.get() == &tensor) view->base = left;
  }
}

}  // namespace

void replace_data(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                  const Value& value) {
  const auto given = shared_as<Tensor>(value);
  check_replaceable(interpreter, *tensor, given.get());
  leave_memory(*tensor);
  if (!tensor->data_replaced && tensor->written) tensor->left_contents = tensor->value;
  graph::Node* const node = interpreter.builder().append(op::detach, {read(interpreter, *given)});
  write(interpreter, *tensor, node->output());
  ++tensor->silent_writes;
  tensor->data_replaced = true;
  given->base = tensor;
  given->view_node = node;
  given->seen_version = tensor->version;
  given->untracked = true;
  tensor->is_viewed = true;
}

void commit_data(Interpreter& interpreter, Tensor& tensor) {
  if (is_planted(State::data, Mutation::not_written)) return;
  if (tensor.varying_writes != nullptr)
    interpreter.refuse(ReasonCode::heap_write,
                       "the attribute data of a tensor that only some runs write in place");
  if (tensor.left_contents != nullptr)
    interpreter.builder().append(
        op::commit, {tensor.left_contents},
        {{"cell", cell_of(interpreter, tensor)}, {"versions", int64_t{0}}});
  const std::string cell = interpreter.add_cell(speculate::CellBinding::Kind::data, tensor.source);
  interpreter.output().cells.back().writes = tensor.version - tensor.silent_writes;
  graph::Value* value = tensor.value;
  if (is_planted(State::data, Mutation::twice))
    value = op::add(interpreter.builder(), {value, value});
  interpreter.builder().append(op::rebind, {value}, {{"cell", cell}});
}

}  // namespace janus::frontend
