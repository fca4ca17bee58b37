// Eager's rules for `.grad`: None is replaced by a new tensor, a tensor is added to in place.
#include "frontend/autograd/grad_attribute.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/mutation.h"
#include "frontend/core/narrowing.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/strides.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;

void set_grad(Tensor& tensor, Value value) {
  tensor.grad_unread |= tensor.grad == nullptr;
  tensor.grad = std::move(value);
  tensor.grad_replaced = true;
}

namespace {

/// Guarded by the GIL, as one thread interprets at a time.
bool are_due = false;

void check_not_due(const Frames& frames, const Tensor& tensor) {
  if (are_due && tensor.source != nullptr && tensor.requires_grad)
    frames.refuse(ReasonCode::autograd, "the .grad of a leaf before its backward pass is over");
}

/// Such a `.grad` is a part of autograd's graph, which outlives the run.
void check_needs_no_gradient(const Frames& frames, const Tensor& grad) {
  if (grad.requires_grad)
    frames.refuse(ReasonCode::autograd, "a .grad that requires a gradient itself");
}

}  // namespace

LeavesAreDue::LeavesAreDue(bool due) : before_(std::exchange(are_due, due)) {}
LeavesAreDue::~LeavesAreDue() { are_due = before_; }

Value read_grad(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor) {
  check_not_due(interpreter, *tensor);
  if (tensor->grad != nullptr) return tensor->grad;
  if (!tensor->is_leaf)
    interpreter.refuse(ReasonCode::autograd, "the .grad of a tensor that is not a leaf");
  if (tensor->source == nullptr) {
    tensor->grad = interpreter.none();
    return tensor->grad;
  }
  Object grad = Object::steal(speculate::tensor_access().grad_of(tensor->object.get()));
  if (!grad) interpreter.refuse_raised();
  if (grad.is(Py_None)) {
    interpreter.assume(Assumption::Kind::no_grad_value, tensor->source);
    tensor->grad = interpreter.none();
  } else {
    tensor->grad = interpreter.wrap(grad.get(),
                                    interpreter.sources().step(Source::Kind::grad, tensor->source));
  }
  return tensor->grad;
}

void write_grad(const Frames& frames, const std::shared_ptr<Tensor>& tensor, const Value& value) {
  check_not_due(frames, *tensor);
  const auto* known = as<Known>(value);
  const auto* grad = as<Tensor>(value);
  if (grad == nullptr && (known == nullptr || !known->object.is(Py_None)))
    frames.refuse(ReasonCode::would_raise, "TypeError: .grad of another class");
  if (grad != nullptr && grad->value->type != tensor->value->type)
    frames.refuse(ReasonCode::would_raise, "RuntimeError: .grad of another shape or dtype");
  if (grad != nullptr && viewed_by(*grad) != nullptr)
    frames.refuse(ReasonCode::autograd, "the assignment of a view to .grad");
  if (grad != nullptr) check_needs_no_gradient(frames, *grad);
  set_grad(*tensor, value);
}

void clear_grad(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor) {
  check_not_due(interpreter, *tensor);
  if (tensor->source == nullptr || !tensor->is_leaf)
    expect_narrowed(read_grad(interpreter, tensor));
  if (!is_none(tensor->grad)) set_grad(*tensor, interpreter.none());
}

namespace {

/// Whether `grad` is what the tensor had as its .grad at entry.
bool is_own_grad(GraphWriter& writer, const Tensor& tensor, const Tensor& grad) {
  return grad.source != nullptr &&
         grad.source == writer.sources().step(Source::Kind::grad, tensor.source);
}

}  // namespace

void finish_autograd(Interpreter& interpreter) {
  std::set<const Tensor*> bound_once;
  for (const auto& tensor : interpreter.entry_tensor_order) {
    if (!tensor->grad_replaced || is_planted(State::grad, Mutation::not_written)) continue;
    const auto* optional = as<Optional>(tensor->grad);
    auto grad = shared_as<Tensor>(optional != nullptr ? optional->value : tensor->grad);
    if (grad == nullptr && !tensor->grad_unread && !had_grad(*tensor)) continue;  // None as before
    std::string cell = interpreter.add_cell(speculate::CellBinding::Kind::grad, tensor->source);
    if (optional != nullptr && is_own_grad(interpreter, *tensor, *grad)) {
      interpreter.builder().append(op::rebind, {interpreter.builder().none(), optional->flag},
                                   {{"cell", cell}, {"keeps", int64_t{1}}});
      continue;
    }
    if (grad != nullptr && grad->source != nullptr)
      interpreter.refuse(ReasonCode::autograd, "an existing tensor becomes a .grad");
    if (grad != nullptr && viewed_by(*grad) != nullptr)
      interpreter.refuse(ReasonCode::autograd,
                         "a .grad that is the data of another tensor as well");
    if (grad != nullptr) check_needs_no_gradient(interpreter, *grad);
    if (grad != nullptr && !bound_once.insert(grad.get()).second)
      interpreter.refuse(ReasonCode::autograd, "one tensor becomes the .grad of two");
    std::vector<graph::Value*> bound = {grad == nullptr ? interpreter.builder().none()
                                                        : read(interpreter, *grad)};
    if (grad != nullptr && is_planted(State::grad, Mutation::twice))
      bound[0] = op::add(interpreter.builder(), {bound[0], bound[0]});
    if (optional != nullptr) bound.push_back(optional->flag);
    graph::Attributes attributes{{"cell", cell}};
    if (grad != nullptr && grad->strides && !is_contiguous(*grad))
      attributes.set("strides", *grad->strides);
    interpreter.builder().append(op::rebind, bound, std::move(attributes));
  }
}

bool had_grad(const Tensor& tensor) {
  Object grad = Object::steal(speculate::tensor_access().grad_of(tensor.object.get()));
  PyErr_Clear();
  return grad && !grad.is(Py_None);
}

}  // namespace janus::frontend
