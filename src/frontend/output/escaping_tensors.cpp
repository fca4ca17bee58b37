#include "frontend/output/escaping_tensors.h"

#include <algorithm>
#include <string>

#include "frontend/output/closure_code.h"
#include "frontend/tensors/overlap.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/restart.h"
#include "frontend/values/strides.h"
#include "frontend/values/symbolic_list.h"
#include "graph/op.h"
#include "ops/list.h"
#include "passes/gradient/reachable.h"

namespace janus::frontend {

namespace {

/// Tensors that Python can reach from the result. Of a list of the graph, what stands for them: as
/// often as there are lists that hold them.
void collect_tensors(const Value& value, std::multiset<const Tensor*>& tensors,
                     std::set<const AbstractValue*>& seen) {
  if (value == nullptr || !seen.insert(value.get()).second) return;
  if (const auto* tensor = as<Tensor>(value)) {
    tensors.insert(tensor);
    if (is_made_leaf(*tensor)) collect_tensors(tensor->grad, tensors, seen);
  }
  if (const auto* optional = as<Optional>(value)) collect_tensors(optional->value, tensors, seen);
  if (const Rolled* list = rolled(value)) {
    tensors.insert(list->memory.get());
  } else if (const auto* sequence = as<Sequence>(value)) {
    for (const Value& element : sequence->elements.known()) collect_tensors(element, tensors, seen);
  }
  if (const auto* instance = as<Instance>(value)) {
    collect_tensors(instance->fields, tensors, seen);
    collect_tensors(instance->items, tensors, seen);
    collect_tensors(instance->elements, tensors, seen);
  }
  if (const auto* method = as<Method>(value)) collect_tensors(method->self, tensors, seen);
  if (const auto* closure = as<Closure>(value)) {
    for (const Value& each : closure->defaults) collect_tensors(each, tensors, seen);
    for (const auto& [name, kind] : closure->scope->names)
      if (kind == syntax::NameKind::free)
        collect_tensors(free_variable(*closure, name).second, tensors, seen);
  }
  if (const auto* dictionary = as<Dictionary>(value)) {
    for (const auto& [key, element] : dictionary->items) collect_tensors(element, tensors, seen);
    collect_tensors(dictionary->attributes, tensors, seen);
  }
}

/// Whether it becomes the `.grad` of a tensor of the entry, in some runs at least.
bool is_new_gradient(const Interpreter& interpreter, const Tensor& tensor) {
  if (tensor.source != nullptr) return false;  // it was there, and may stay
  return std::ranges::any_of(interpreter.entry_tensor_order, [&](const auto& leaf) {
    const auto* optional = as<Optional>(leaf->grad);
    const Value& gradient = optional != nullptr ? optional->value : leaf->grad;
    return leaf->grad_replaced && gradient.get() == &tensor;
  });
}

bool may_share(const Tensor& tensor, const Tensor* root) {
  const Tensor* own = memory_of(&tensor);
  if (own == root) return true;
  for (const PossibleAlias& alias : own->possible_aliases)
    if (alias.tensor.lock().get() == root) return true;
  return false;
}

/// Whether surely no two elements of the view lie at one place, as an expanded one's do. How an
/// opaque operator's view lies is not known.
bool has_a_place_for_each(const Tensor& view) {
  for (const Tensor* step = &view; viewed_by(*step) != nullptr; step = step->base.get()) {
    if (step->base == nullptr) return false;
    switch (step->view_node->op->sees) {
      case graph::Sees::part:
      case graph::Sees::viewed:
      case graph::Sees::reshaped:
      case graph::Sees::squeezed:
      case graph::Sees::unsqueezed:
      case graph::Sees::permuted:
        break;
      default:
        return false;
    }
  }
  return true;
}

}  // namespace

bool is_made_leaf(const Tensor& tensor) {
  return tensor.source == nullptr && tensor.requires_grad && tensor.is_leaf;
}

std::shared_ptr<Tensor> leaf_with_gradient(const Interpreter& interpreter, const Tensor& gradient) {
  for (const auto& leaf : interpreter.entry_tensor_order)
    if (leaf->grad_replaced && leaf->grad.get() == &gradient) return leaf;
  return nullptr;
}

EscapingTensors::EscapingTensors(Interpreter& interpreter, const std::vector<Value>& written)
    : interpreter_(interpreter) {
  std::set<const AbstractValue*> seen;
  for (const Value& value : written) collect_tensors(value, tensors_, seen);
}

void EscapingTensors::check_new_gradients(const std::vector<Value>& written) const {
  std::set<const AbstractValue*> seen;
  std::multiset<const Tensor*> beside;  // tensors that Python can reach other than as a `.grad`
  for (const auto& leaf : interpreter_.entry_tensor_order)
    if (leaf->grad_replaced && as<Optional>(leaf->grad) != nullptr) seen.insert(leaf->grad.get());
  for (const Value& value : written) collect_tensors(value, beside, seen);
  for (const auto& leaf : interpreter_.entry_tensor_order) {
    const auto* optional = as<Optional>(leaf->grad);
    const auto* grad = as<Tensor>(optional != nullptr ? optional->value : leaf->grad);
    if (!leaf->grad_replaced || grad == nullptr || grad->source != nullptr) continue;
    const bool is_shown =
        optional != nullptr && std::ranges::any_of(beside, [&](const Tensor* other) {
          return memory_of(other) == memory_of(grad);
        });
    if (is_shown || may_be_another(*grad)) follow_branch_of(optional, *grad);
  }
}

void EscapingTensors::check_possible_aliases(const Tensor& tensor) const {
  if (may_be_another(tensor))
    interpreter_.refuse(ReasonCode::unsupported_tensor,
                        "a result that is another tensor on one side of a branch");
}

/// Whether it shares memory with another tensor that Python holds on one side of a branch.
bool EscapingTensors::may_be_another(const Tensor& tensor) const {
  const Tensor* root = memory_of(&tensor);
  std::set<const Tensor*> seen = {root};
  return may_be_another(tensor, *root, seen);
}

/// Of the tensor, what `step` may be, which it may be.
bool EscapingTensors::may_be_another(const Tensor& tensor, const Tensor& step,
                                     std::set<const Tensor*>& seen) const {
  for (const PossibleAlias& alias : step.possible_aliases) {
    auto other = alias.tensor.lock();
    if (other == nullptr || !seen.insert(other.get()).second) continue;
    if (may_be_another(tensor, *other, seen)) return true;
    const Tensor* memory = memory_of(other.get());
    if (memory->source != nullptr || memory->is_borrowed || is_new_gradient(interpreter_, *memory))
      return true;
    for (const Tensor* escaping : tensors_)
      if (escaping != &tensor && may_share(*escaping, other.get())) return true;
  }
  return false;
}

bool EscapingTensors::is_shown_view(const Tensor& tensor) const {
  const Tensor* memory = memory_of(&tensor);
  if (memory == &tensor) return false;
  if (is_leaf_view(tensor) || (tensor.base != nullptr && !is_contiguous(tensor))) return true;
  if (memory->source != nullptr || leaf_with_gradient(interpreter_, *memory) != nullptr)
    return true;
  for (const Tensor* other : tensors_)
    if (other != &tensor && memory_of(other) == memory) return true;
  return false;
}

EscapingTensors::Tensors EscapingTensors::find_on_the_way(const Tensor& memory) const {
  std::vector<const Tensor*> views;
  std::vector<graph::Value*> values, others;
  for (const Tensor* each : tensors_) {
    const Tensor* const own = memory_of(each);
    if (own != &memory) {
      if (each->requires_grad && own->source == nullptr) others.push_back(own->value);
    } else if (each != &memory && each->requires_grad && is_current(*each)) {
      views.push_back(each);
      values.push_back(each->value);
    }
  }
  const std::vector<bool> reached = passes::reachable(others, values);
  Tensors found;
  for (size_t i = 0; i < views.size(); ++i)
    if (reached[i]) found.insert(views[i]);
  return found;
}

bool EscapingTensors::is_on_the_way(const std::shared_ptr<Tensor>& view) const {
  if (!view->requires_grad || view->is_leaf || !tensors_.contains(view.get())) return false;
  const Tensor* const memory = memory_of(view.get());
  if (memory->source != nullptr) return false;  // a known gap: trees give rows of a parameter
  const auto [found, is_new] = on_the_way_.try_emplace(memory);
  if (is_new) found->second = find_on_the_way(*memory);
  return found->second.contains(view.get());
}

bool EscapingTensors::may_stand_alone(const Tensor& view) const {
  const Tensor* const memory = memory_of(&view);
  if (memory->is_borrowed || leaf_with_gradient(interpreter_, *memory) != nullptr ||
      !has_a_place_for_each(view))
    return false;
  return std::ranges::all_of(tensors_, [&](const Tensor* other) {
    return other == &view || memory_of(other) != memory || are_apart(view, *other);
  });
}

/// The branch that decides which tensor the `.grad` is, or whether it is one.
void EscapingTensors::follow_branch_of(const Optional* optional, const Tensor& grad) const {
  const std::string why = "a .grad is another tensor on one side";
  if (optional != nullptr) throw CannotMerge{optional->test, why};
  std::vector<graph::Value*> contents = grad.past_values;
  contents.push_back(grad.value);
  for (const graph::Value* value : contents) {
    while (value->definition != nullptr && value->definition->op == &op::detach)
      value = value->definition->inputs.front();
    const auto test = interpreter_.scope_nodes.find(value->definition);
    if (test != interpreter_.scope_nodes.end()) throw CannotMerge{test->second, why};
  }
  interpreter_.refuse(ReasonCode::autograd, why);
}

}  // namespace janus::frontend
