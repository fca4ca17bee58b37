#include "frontend/autograd/requires_grad.h"

#include <algorithm>

#include "frontend/autograd/gradient_flags.h"
#include "frontend/autograd/special_callables.h"
#include "frontend/autograd/tracked_values.h"
#include "frontend/core/class_of.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/tensors/grad_fn_name.h"
#include "frontend/tensors/tensor.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;

namespace {

/// Views have the flag of their base, and are taken again when that is written: those that Python
/// still holds would have to be switched as well.
bool has_live_view(const Tensor& tensor) {
  for (Changeable* each = Changeable::first(); each != nullptr; each = each->next_changeable()) {
    const auto* view = dynamic_cast<const Tensor*>(each);
    if (view != nullptr && viewed_by(*view).get() == &tensor && !view->untracked &&
        !view->producer.is(op::detach))
      return true;
  }
  return false;
}

void check_can_switch(Interpreter& interpreter, const Tensor& tensor, bool wanted) {
  if (!tensor.is_leaf)
    interpreter.refuse(ReasonCode::would_raise,
                       "RuntimeError: requires_grad of a tensor that is not a leaf");
  if (wanted && !graph::is_differentiable(tensor.value->type.dtype))
    interpreter.refuse(ReasonCode::would_raise,
                       "RuntimeError: only floating point tensors can require gradients");
  if (interpreter.made_in_inference || interpreter.output().environment.inference_mode)
    interpreter.refuse(ReasonCode::mode_active, "requires_grad after inference mode");
  const bool may_be_another =
      tensor.is_borrowed || tensor.list_memory != nullptr || has_live_alias(tensor);
  if (may_be_another || (viewed_by(tensor) != nullptr && !tensor.producer.is(op::detach)) ||
      has_live_view(tensor) || interpreter.hooked_leaves.contains(&tensor) ||
      interpreter.recursion().is_building())
    interpreter.refuse(ReasonCode::autograd, "requires_grad of a tensor with views or hooks");
}

/// The value with the same contents that autograd tracks where it does not track this one. It has
/// to be seen wherever the tensor is used later.
graph::Value* counterpart_of(Interpreter& interpreter, graph::Value* value) {
  if (graph::Value* counterpart = interpreter.switches.counterpart_or_null(value))
    return counterpart;
  const bool is_of_entry = value->owner == &interpreter.output().graph.body() ||
                           (value->definition != nullptr && value->definition->op == &op::state);
  if (!is_of_entry && interpreter.open_scopes() > 0)
    interpreter.refuse(ReasonCode::autograd, "requires_grad of a tensor made in the run");
  graph::Builder root = interpreter.root_builder();
  graph::Value* counterpart = op::detach(root, {value});
  interpreter.switches.counterparts[value] = counterpart;
  interpreter.switches.counterparts[counterpart] = value;
  return counterpart;
}

}  // namespace

void set_requires_grad(Interpreter& interpreter, const std::shared_ptr<Tensor>& tensor,
                       bool wanted) {
  if (shows_gradient(interpreter, *tensor) == wanted) return;
  check_can_switch(interpreter, *tensor, wanted);
  interpreter.switches.at_entry.try_emplace(tensor.get(), tensor->requires_grad);
  interpreter.kept_apart.insert(tensor.get());
  read(interpreter, *tensor);
  tensor->value = counterpart_of(interpreter, tensor->value);
  tensor->requires_grad = wanted;
  if (!wanted) return;
  interpreter.differentiable.insert(tensor->value);
  auto& leaves = interpreter.made_leaves;
  if (tensor->source == nullptr && std::find(leaves.begin(), leaves.end(), tensor) == leaves.end())
    leaves.push_back(tensor);
}

void commit_requires_grad(Interpreter& interpreter) {
  for (const auto& tensor : interpreter.entry_tensor_order) {
    if (!is_switched(interpreter, *tensor)) continue;
    speculate::HeapWrite write;
    write.kind = speculate::HeapWrite::Kind::attribute;
    write.owner = tensor->source;
    write.key = Object::steal(PyUnicode_InternFromString("requires_grad"));
    write.value.kind = speculate::Template::Kind::constant;
    write.value.object = Object::borrow(tensor->requires_grad ? Py_True : Py_False);
    interpreter.output().writes.push_back(std::move(write));
  }
}

// --- from Python --------------------------------------------------------------------------------

namespace {

/// Tensor.requires_grad_(self, requires_grad=True)
Value call_requires_grad_(Interpreter& interpreter, const CallArguments& arguments) {
  auto tensor = shared_as<Tensor>(arguments.positional.at(0));
  if (tensor == nullptr || arguments.positional.size() + arguments.keywords.size() > 2)
    return nullptr;
  interpreter.heap.note_change();  // a generator may read the flag between two elements
  const Value* flag = arguments.positional.size() > 1 ? &arguments.positional[1]
                                                      : arguments.keyword("requires_grad");
  if (flag == nullptr && !arguments.keywords.empty()) return nullptr;
  if (flag != nullptr && class_of(*flag) != &PyBool_Type)
    interpreter.refuse(ReasonCode::would_raise, "TypeError: requires_grad must be a bool");
  switch_requires_grad(interpreter, tensor, flag == nullptr || truth(interpreter, *flag, -1));
  return tensor;
}

/// Whether eager may have made the tensor as a view of one that the graph does not have: composed
/// operators
/// (`einsum`, a linear layer of a batch of rows) end in one at times.
bool may_end_in_a_view(const Tensor& tensor) {
  if (tensor.source != nullptr) return false;
  if (!tensor.is_leaf) {
    static constexpr std::string_view views[] = {
        "View",  "ReshapeAlias", "AsStrided", "Alias",     "Diagonal", "Expand", "Permute",
        "Split", "Slice",        "Squeeze",   "TBackward", "Select",   "Unfold", "Transpose",
        "Chunk", "Unsqueeze",    "Unbind",    "Conj",      "NegView",  "torch::"};
    const std::string name = grad_fn_name(tensor);
    return std::ranges::any_of(views,
                               [&](std::string_view view) { return name.starts_with(view); });
  }
  const graph::Node* made_by = tensor.value->definition;
  return made_by == nullptr ||
         !(made_by->op->is(graph::Trait::elementwise) || made_by->inputs.empty());
}

/// The tensor itself leaves autograd's graph.
Value call_detach_(Interpreter& interpreter, const CallArguments& arguments) {
  if (arguments.positional.size() != 1 || !arguments.keywords.empty()) return nullptr;
  auto tensor = shared_as<Tensor>(arguments.positional[0]);
  if (tensor == nullptr) return nullptr;
  const bool is_view_of_entry = tensor->source != nullptr && tensor->uncertain_alias;
  if (viewed_by(*tensor) != nullptr || is_view_of_entry || may_end_in_a_view(*tensor))
    interpreter.refuse(ReasonCode::autograd, "detach_() of a view");
  if (tensor->is_leaf) {
    switch_requires_grad(interpreter, tensor, false);
    return tensor;
  }
  if (tensor->source != nullptr)
    interpreter.refuse(ReasonCode::heap_write, tensor->source->describe() + ".requires_grad");
  tensor->requires_grad = false;
  tensor->is_leaf = true;
  tensor->value = op::detach(interpreter.builder(), {tensor->value});
  return tensor;
}

}  // namespace

std::span<const SpecialCallable> requires_grad_callables() {
  static constexpr SpecialCallable table[] = {
      {"torch.Tensor.requires_grad_", call_requires_grad_},
      {"torch.Tensor.detach_", call_detach_},
  };
  return table;
}

}  // namespace janus::frontend
