#include "frontend/control/symbolic_lists.h"

#include <algorithm>

#include "frontend/autograd/gradient_flags.h"
#include "frontend/core/operations.h"
#include "frontend/core/run_time_objects.h"
#include "frontend/tensors/grad_fn_name.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/class_sets.h"
#include "frontend/values/list_lengths.h"
#include "frontend/values/make.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/restart.h"
#include "frontend/values/symbolic_list.h"
#include "ops/list.h"

namespace janus::frontend {

using graph::Type;
using syntax::CompareOperator;
using syntax::Operator;

// --- forms --------------------------------------------------------------------------------------

namespace {

Type number_type(ValueMaker& maker, const Value& number) { return maker.graph_value(number)->type; }

}  // namespace

std::optional<ElementForm> joined(const ElementForm& a, const ElementForm& b, std::string& why) {
  if (a.kind == ElementForm::Kind::object && a == b) {
    ElementForm form = a;
    form.classes = united(a.classes, b.classes);
    return form;
  }
  if (a == b && a.parts.empty()) return a;
  if (a.kind != b.kind || a.parts.size() != b.parts.size()) {
    why = "elements of different kinds";
    return std::nullopt;
  }
  if (a.kind == ElementForm::Kind::tuple) {
    ElementForm form = a;
    for (size_t i = 0; i < a.parts.size(); ++i) {
      auto part = joined(a.parts[i], b.parts[i], why);
      if (!part) return std::nullopt;
      form.parts[i] = *part;
    }
    return form;
  }
  why = a.type != b.type
            ? cat("elements ", graph::to_string(a.type), " and ", graph::to_string(b.type))
            : "only some elements require a gradient";
  return std::nullopt;
}

std::optional<ElementForm> element_form(Interpreter& interpreter, const Value& value) {
  ElementForm form;
  if (value != nullptr && is_number(value)) {
    form.type = number_type(interpreter, value);
    return form;
  }
  if (const auto* tensor = as<Tensor>(value)) {
    // A leaf that gathers gradients is an object of its own.
    if (tensor->is_parameter || (tensor->requires_grad && tensor->is_leaf)) return std::nullopt;
    expect_known_gradient(interpreter, *tensor);
    form.kind = ElementForm::Kind::tensor;
    form.type = tensor->value->type;
    form.tracked = tensor->requires_grad;
    return form;
  }
  if (const auto* object = as<RuntimeObject>(value)) {
    form.kind = ElementForm::Kind::object;
    form.type = object->value->type;
    form.classes = possible_classes(interpreter, value);
    return form;
  }
  const auto* tuple = as<Sequence>(value);
  if (tuple == nullptr || tuple->is_list || tuple->type || tuple->viewed || tuple->elements.empty())
    return std::nullopt;
  form.kind = ElementForm::Kind::tuple;
  for (const Value& part : tuple->elements.known()) {
    std::optional<ElementForm> of_part = element_form(interpreter, part);
    if (!of_part) return std::nullopt;
    form.parts.push_back(std::move(*of_part));
  }
  return form;
}

std::optional<ElementForm> common_form(Interpreter& interpreter, const std::vector<Value>& values,
                                       std::string& why) {
  std::optional<ElementForm> common;
  for (const Value& value : values) {
    std::optional<ElementForm> form = element_form(interpreter, value);
    if (!form) {
      why = "an element that is neither a number nor a tensor";
      return std::nullopt;
    }
    common = common ? joined(*common, *form, why) : form;
    if (!common) return std::nullopt;
  }
  if (!common) why = "a list of which no element was seen";
  return common;
}

// --- elements -----------------------------------------------------------------------------------

namespace {

bool leads_to(const Tensor& memory, const Tensor* other) {
  return std::ranges::any_of(memory.possible_aliases, [&](const PossibleAlias& alias) {
    return alias.tensor.lock().get() == other;
  });
}

/// Notes that a list gets an element that was taken from another one. Of one list every element is
/// taken once, as long as no loop begins with that list anew (Loop::begin_list).
void add_elements_of(Interpreter& interpreter, Tensor& memory, const Tensor& from) {
  if (interpreter.may_come_again(from) || (!leads_to(memory, &from) && may_overlap(memory, from)))
    memory.uncertain_alias = true;
  add_to_memory(memory, from);
}

/// Of a list's elements, which have their `grad_fn` by that name.
void add_name(Tensor& memory, const std::string& name) {
  std::string& known = memory.grad_fn_name;
  known = known.empty() || known == name ? name : kManyOperators;
}

void flatten(Interpreter& interpreter, const ElementForm& form, const Value& value, Tensor& memory,
             std::vector<graph::Value*>& leaves) {
  if (form.kind == ElementForm::Kind::number) {
    leaves.push_back(interpreter.graph_value(value));
    return;
  }
  if (form.kind == ElementForm::Kind::object) {
    leaves.push_back(as<RuntimeObject>(value)->value);
    return;
  }
  if (form.kind == ElementForm::Kind::tuple) {
    const std::vector<Value>& parts = as<Sequence>(value)->elements;
    for (size_t i = 0; i < parts.size(); ++i)
      flatten(interpreter, form.parts[i], parts[i], memory, leaves);
    return;
  }
  auto tensor = shared_as<Tensor>(value);
  leaves.push_back(read(interpreter, *tensor));
  if (form.tracked) add_name(memory, grad_fn_name(*tensor));
  const std::shared_ptr<Tensor> root = memory_of(tensor);
  // Python could tell a view from what the graph hands out.
  const bool is_view = tensor->base != nullptr || tensor->taken_from != nullptr;
  if (is_view && (!tensor->producer.is(op::detach) || root->is_borrowed))
    memory.uncertain_alias = true;
  std::shared_ptr<Tensor> all = std::static_pointer_cast<Tensor>(memory.shared_from_this());
  // Nor can the graph say which elements are one object.
  const auto& others = root->possible_aliases;
  if (interpreter.may_come_again(*root) ||
      std::any_of(others.begin(), others.end(),
                  [&](const PossibleAlias& alias) { return alias.tensor.lock() == all; }))
    memory.uncertain_alias = true;
  if (const auto& from = root->list_memory; from != nullptr && from != all)
    add_elements_of(interpreter, memory, *from);
  for (const std::shared_ptr<Tensor>& other : roots_of(tensor))
    if (other != all) memory.possible_aliases.add({other, other->version});
  root->possible_aliases.add({all, all->version});
}

/// What an element that stays in the list may be: whoever asks again gets it again.
std::shared_ptr<Tensor> kept_in(const std::shared_ptr<Tensor>& list) {
  auto memory = std::make_shared<Tensor>();
  follow_memory(*memory, list);
  memory->list_memory = list;
  memory->uncertain_alias = true;
  return memory;
}

Value tensor_in(Interpreter& interpreter, const ElementForm& form, graph::Value* value,
                const std::shared_ptr<Tensor>& memory, bool stays) {
  bool tracked = form.tracked;
  if (!tracked && graph::carries_gradient(value->type) && !interpreter.differentiable.empty())
    value = op::detach(interpreter.builder(), {value});
  auto tensor = make_tensor(interpreter, value, tracked);
  tensor->strides.reset();
  tensor->uncertain_alias = true;
  tensor->possible_aliases.add({memory, memory->version});
  tensor->list_memory = stays ? kept_in(memory) : memory;
  tensor->is_borrowed = memory->is_borrowed;
  return tensor;
}

/// Makes an element of its leaves, from the first one on.
Value assemble(Interpreter& interpreter, const ElementForm& form,
               const std::vector<graph::Value*>& leaves, size_t& next,
               const std::shared_ptr<Tensor>& memory, bool stays) {
  if (form.kind == ElementForm::Kind::number) return interpreter.number(leaves[next++]);
  if (form.kind == ElementForm::Kind::object)
    return std::make_shared<RuntimeObject>(leaves[next++], form.classes);
  if (form.kind == ElementForm::Kind::tensor)
    return tensor_in(interpreter, form, leaves[next++], memory, stays);
  std::vector<Value> parts;
  for (const ElementForm& part : form.parts)
    parts.push_back(assemble(interpreter, part, leaves, next, memory, stays));
  return make_tuple(std::move(parts));
}

void push(Interpreter& interpreter, Rolled& list, const Value& value) {
  std::vector<graph::Value*> leaves;
  flatten(interpreter, list.form, value, *list.memory, leaves);
  for (size_t i = 0; i < leaves.size(); ++i)
    list.lists[i] = op::list_push(interpreter.builder(), {list.lists[i], leaves[i]});
}

}  // namespace

std::shared_ptr<Rolled> roll(Interpreter& interpreter, const TestKey& test, const ElementForm& form,
                             const std::vector<Value>& elements, bool front) {
  auto list = std::make_shared<Rolled>();
  list->test = test;
  list->form = form;
  list->front = front;
  list->memory = std::make_shared<Tensor>();
  list->length = interpreter.integer(static_cast<int64_t>(elements.size()));
  for (Type& type : list_types(form))
    list->lists.push_back(
        interpreter.builder().append_unchecked(op::list_new, {}, {}, {std::move(type)})->output());
  for (size_t i = 0; i < elements.size(); ++i)
    push(interpreter, *list, elements[front ? elements.size() - 1 - i : i]);
  return list;
}

std::shared_ptr<Rolled> grown(Interpreter& interpreter, const Rolled& list, const Value& value,
                              bool front) {
  if (list.front != front && !list.undecided) return nullptr;
  std::string why;
  std::optional<ElementForm> form = common_form(interpreter, {value}, why);
  if (form) form = joined(list.form, *form, why);
  if (!form) throw CannotMerge{list.test, why};
  auto longer = std::make_shared<Rolled>(list);
  longer->form = *form;
  longer->front = front;
  longer->undecided = false;
  push(interpreter, *longer, value);
  longer->length = list.length == nullptr
                       ? nullptr
                       : binary(interpreter, Operator::Add, list.length, interpreter.integer(1));
  return longer;
}

Value last_pushed(Interpreter& interpreter, const Rolled& list) {
  std::vector<graph::Value*> leaves;
  for (const graph::Value* each : list.lists) {
    const graph::Node* push = each->definition;
    if (push == nullptr || push->op != &op::list_push) return nullptr;
    leaves.push_back(push->inputs[1]);
  }
  size_t next = 0;
  return assemble(interpreter, list.form, leaves, next, list.memory, /*stays=*/true);
}

std::optional<Popped> popped(Interpreter& interpreter, const Rolled& list, bool front,
                             bool partly) {
  if (list.front != front) return std::nullopt;
  graph::Attributes attributes;
  if (partly) attributes.set("partly", true);
  auto rest = std::make_shared<Rolled>(list);
  std::vector<graph::Value*> leaves;
  for (graph::Value*& each : rest->lists) {
    const graph::Node* pop = interpreter.builder().append(op::list_pop, {each}, attributes);
    each = pop->outputs[0];
    leaves.push_back(pop->outputs[1]);
  }
  if (list.length != nullptr)
    rest->length = binary(interpreter, Operator::Sub, list.length, interpreter.integer(1));
  size_t next = 0;
  return Popped{rest, assemble(interpreter, list.form, leaves, next, list.memory, /*stays=*/false)};
}

Value length_of(Interpreter& interpreter, const Rolled& list) {
  if (list.length != nullptr) return list.length;
  const graph::Value* elements = list.lists.front();
  const auto known =
      interpreter.run_time_size([&](const auto* other) { return other == elements; });
  if (known) return interpreter.dimension(*known);
  return interpreter.number(op::list_size(interpreter.builder(), {list.lists.front()}));
}

Value element_at(Interpreter& interpreter, const Rolled& list, const Value& position, bool taken) {
  Value at = position;
  if (list.front) at = binary(interpreter, Operator::Sub, interpreter.integer(-1), position);
  std::vector<graph::Value*> leaves;
  for (graph::Value* each : list.lists)
    leaves.push_back(op::list_item(interpreter.builder(), {each, interpreter.graph_value(at)}));
  size_t next = 0;
  return assemble(interpreter, list.form, leaves, next, list.memory, !taken);
}

std::shared_ptr<Rolled> facing(GraphWriter& writer, const Rolled& list, bool front) {
  auto turned = std::make_shared<Rolled>(list);
  if (list.front == front) return turned;
  turned->front = front;
  turned->undecided = false;
  for (graph::Value*& each : turned->lists) each = op::list_reverse(writer.builder(), {each});
  return turned;
}

std::shared_ptr<Rolled> reversed(const Rolled& list) {
  auto other = std::make_shared<Rolled>(list);
  other->front = !list.front;
  return other;
}

// --- a list as one tensor -----------------------------------------------------------------------

Value tensor_of_numbers(Interpreter& interpreter, const Rolled& list, graph::DType dtype) {
  using graph::DType;
  bool fits =
      dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i64 || dtype == DType::b1;
  if (list.form.kind != ElementForm::Kind::number || !fits) return nullptr;
  graph::Dim size = dimension_of(interpreter, list);
  graph::Value* value = op::list_stack(interpreter.builder(), {in_order(interpreter, list)},
                                       {{"dtype", dtype}, {"size", size_attribute(size)}});
  return make_tensor(interpreter, value, false);
}

graph::AttributeValue size_attribute(const graph::Dim& size) {
  return size.is_constant() ? graph::AttributeValue(size.value()) : graph::AttributeValue(size);
}

graph::Value* in_order(GraphWriter& writer, const Rolled& list) {
  graph::Value* values = list.lists.front();
  return list.front ? op::list_reverse(writer.builder(), {values}) : values;
}

Value tensor_of_list(Interpreter& interpreter, const Rolled& list, graph::Value* value,
                     const graph::OpDef& op) {
  bool tracked = list.form.tracked && interpreter.modes.grad_enabled;
  if (!tracked && graph::carries_gradient(value->type) && !interpreter.differentiable.empty())
    value = op::detach(interpreter.builder(), {value});
  auto tensor = make_tensor(interpreter, value, tracked);
  tensor->producer = op;
  return tensor;
}

graph::Dim dimension_of(Interpreter& interpreter, const Rolled& list) {
  Value length = length_of(interpreter, list);
  if (const auto* known = as<Known>(length)) return int64_t{PyLong_AsLongLong(known->object.get())};
  const auto& number = *as<Number>(length);
  if (number.dim && number.dim->lower_bound().value_or(0) >= 2) return *number.dim;
  const graph::Value* elements = list.lists.front();
  const auto is_as_long = [&](const graph::Value* other) {
    return other == elements ||
           (other->type.kind == Type::Kind::list && have_one_length(other, elements));
  };
  if (const auto known = interpreter.run_time_size(is_as_long)) return *known;
  std::optional<graph::Dim> dim = interpreter.run_time_dimension(interpreter.graph_value(length));
  if (!dim)
    throw CannotMerge{list.test, "a tensor is made of a list whose length varies by iteration"};
  interpreter.note_run_time_size(elements, *dim);
  return *dim;
}

std::vector<std::shared_ptr<Tensor>> roots_of(const std::shared_ptr<Tensor>& tensor) {
  std::vector<std::shared_ptr<Tensor>> roots = {memory_of(tensor)};
  const std::shared_ptr<Tensor> root = roots.front();
  const auto add = [&](const PossibleAliases& aliases) {
    for (const PossibleAlias& alias : aliases)
      if (auto other = alias.tensor.lock(); other != nullptr && other != root)
        roots.push_back(std::move(other));
  };
  add(root->possible_aliases);
  if (root->list_memory != nullptr) add(root->list_memory->possible_aliases);
  return roots;
}

void relate(const std::shared_ptr<Tensor>& tensor, const std::shared_ptr<Tensor>& root) {
  tensor->possible_aliases.add({root, root->version});
  const bool is_list = root->value == nullptr;
  if (is_list) root->possible_aliases.add({tensor, tensor->version});
}

void relate_to_others(const std::shared_ptr<Tensor>& tensor,
                      const std::vector<std::shared_ptr<Tensor>>& roots, const Snapshot& others) {
  const auto is_root = [&](const PossibleAlias& alias) {
    return std::ranges::find(roots, alias.tensor.lock()) != roots.end();
  };
  for (const Snapshot::Saved& saved : others.objects()) {
    auto* const other = saved.alive() ? dynamic_cast<Tensor*>(saved.object) : nullptr;
    if (other == nullptr || other == tensor.get() || other->value == nullptr ||
        std::ranges::none_of(other->possible_aliases, is_root))
      continue;
    const auto shared = std::static_pointer_cast<Tensor>(other->shared_from_this());
    relate(tensor, shared);
    relate(shared, tensor);
  }
}

bool holds_tensors(const ElementForm& form) {
  return form.kind == ElementForm::Kind::tensor || std::ranges::any_of(form.parts, holds_tensors);
}

bool may_overlap(const Tensor& a, const Tensor& b) {
  if (&a == &b || leads_to(a, &b) || leads_to(b, &a)) return true;
  return std::ranges::any_of(a.possible_aliases, [&](const PossibleAlias& alias) {
    const std::shared_ptr<Tensor> other = alias.tensor.lock();
    return other != nullptr && other->value == nullptr && leads_to(b, other.get());
  });
}

void add_to_memory(Tensor& memory, const TensorState& other) {
  memory.uncertain_alias |= other.uncertain_alias;
  memory.is_borrowed |= other.is_borrowed;
  if (!other.grad_fn_name.empty()) add_name(memory, other.grad_fn_name);
  for (const PossibleAlias& alias : other.possible_aliases)
    if (alias.tensor.lock().get() != &memory) memory.possible_aliases.add(alias);
}

void follow_memory(Tensor& memory, const std::shared_ptr<Tensor>& other) {
  add_to_memory(memory, *other);
  memory.possible_aliases.add({other, other->version});
}

std::shared_ptr<Tensor> memory_with(const ElementForm& form,
                                    const std::vector<std::shared_ptr<Tensor>>& memories) {
  auto memory = std::make_shared<Tensor>();
  if (form.kind == ElementForm::Kind::number) return memory;
  for (const std::shared_ptr<Tensor>& other : memories) follow_memory(*memory, other);
  for (const PossibleAlias& alias : memory->possible_aliases)
    if (const std::shared_ptr<Tensor> tensor = alias.tensor.lock())
      tensor->possible_aliases.add({memory, memory->version});
  return memory;
}

}  // namespace janus::frontend
