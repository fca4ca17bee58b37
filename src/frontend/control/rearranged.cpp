#include "frontend/control/rearranged.h"

#include <algorithm>
#include <limits>

#include "ops/list.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/restart.h"
#include "frontend/values/rolled_list.h"
#include "frontend/core/class_of.h"
#include "frontend/core/operations.h"
#include "frontend/core/interpreter.h"
#include "frontend/control/rolled.h"

namespace janus::frontend {

using graph::Type;

namespace {

/// Another list that may hold the same tensors and tuples.
std::shared_ptr<Tensor> memory_with(const ElementForm& form,
                                    const std::vector<std::shared_ptr<Tensor>>& memories) {
  auto memory = std::make_shared<Tensor>();
  if (form.kind == ElementForm::Kind::number) return memory;
  for (const std::shared_ptr<Tensor>& other : memories) {
    memory->uncertain_alias |= other->uncertain_alias;
    memory->is_borrowed |= other->is_borrowed;
    if (!other->grad_fn_name.empty())
      memory->grad_fn_name =
          memory->grad_fn_name.empty() || memory->grad_fn_name == other->grad_fn_name
              ? other->grad_fn_name
              : std::string(kManyOperators);
    PossibleAliases aliases = other->possible_aliases;
    aliases.add({other, other->version});
    for (const PossibleAlias& alias : aliases) {
      const std::shared_ptr<Tensor> tensor = alias.tensor.lock();
      if (tensor == nullptr || tensor == memory) continue;
      memory->possible_aliases.add(alias);
      tensor->possible_aliases.add({memory, memory->version});
    }
  }
  return memory;
}

bool is_known_integer(const Value& value, int64_t number) {
  PyObject* object = known_object(value);
  if (object == nullptr || !PyLong_CheckExact(object)) return false;
  const bool same = PyLong_AsLongLong(object) == number;
  PyErr_Clear();
  return same;
}

/// A bound of a slice as an i64; null if it is none.
graph::Value* bound(Interpreter& interpreter, const Value& value, int64_t otherwise) {
  if (is_none(value)) return interpreter.builder().constant(otherwise);
  if (!is_number(value)) return nullptr;
  graph::Value* number = interpreter.graph_value(value);
  return number->type.kind == Type::Kind::i64 ? number : nullptr;
}

/// The list, or the elements known so far as one of that form; null where there are none.
std::shared_ptr<const Rolled> as_list(Interpreter& interpreter, const Rolled& like,
                                      const ElementList& elements) {
  if (elements.rolled() != nullptr) return facing(interpreter, *elements.rolled(), false);
  if (elements.empty()) return nullptr;
  std::string why;
  const std::optional<ElementForm> form = common_form(interpreter, elements.known(), why);
  if (!form || *form != like.form)
    throw CannotMerge{like.test, form ? "lists of different elements are joined" : why};
  return roll(interpreter, like.test, *form, elements.known(), false);
}

}  // namespace

std::shared_ptr<const Rolled> part_of(Interpreter& interpreter,
                                      const std::shared_ptr<const Rolled>& list, const Value& start,
                                      const Value& stop) {
  graph::Value* const from = bound(interpreter, start, 0);
  graph::Value* const to = bound(interpreter, stop, std::numeric_limits<int64_t>::max());
  if (from == nullptr || to == nullptr) return nullptr;
  auto part = facing(interpreter, *list, false);
  part->undecided = false;
  for (graph::Value*& each : part->lists)
    each = op::list_slice(interpreter.builder(), {each, from, to});
  part->length = nullptr;
  part->memory = memory_with(list->form, {list->memory});
  return part;
}

std::shared_ptr<const Rolled> joined(Interpreter& interpreter, const ElementList& first,
                                     const ElementList& second) {
  const Rolled& like = first.rolled() != nullptr ? *first.rolled() : *second.rolled();
  const auto before = as_list(interpreter, like, first);
  const auto behind = as_list(interpreter, like, second);
  if (before == nullptr || behind == nullptr) return before == nullptr ? behind : before;
  if (before->form != behind->form)
    throw CannotMerge{like.test, "lists of different elements are joined"};
  auto both = std::make_shared<Rolled>(*before);
  both->undecided = false;
  for (size_t i = 0; i < both->lists.size(); ++i)
    both->lists[i] = op::list_join(interpreter.builder(), {before->lists[i], behind->lists[i]});
  both->length = before->length == nullptr || behind->length == nullptr
                     ? nullptr
                     : binary(interpreter, syntax::Operator::Add, before->length, behind->length);
  both->memory = memory_with(both->form, {before->memory, behind->memory});
  return both;
}

std::shared_ptr<const Rolled> with_part(Interpreter& interpreter,
                                        const std::shared_ptr<const Rolled>& list,
                                        const Value& start, const Value& stop,
                                        const ElementList& part) {
  std::shared_ptr<const Rolled> before = part_of(interpreter, list, interpreter.integer(0), start);
  std::shared_ptr<const Rolled> behind = part_of(interpreter, list, stop, interpreter.none());
  if (before == nullptr || behind == nullptr) return nullptr;
  if (is_none(start) || is_known_integer(start, 0)) before = nullptr;
  if (is_none(stop)) behind = nullptr;
  ElementList whole = part;
  const auto add = [&](const std::shared_ptr<const Rolled>& other, bool in_front) {
    if (other == nullptr) return;
    const ElementList added(other);
    whole = ElementList(in_front ? joined(interpreter, added, whole)
                                 : joined(interpreter, whole, added));
  };
  add(before, true);
  add(behind, false);
  if (auto made = as_list(interpreter, *list, whole)) return made;
  return roll(interpreter, list->test, list->form, {}, false);
}

Value position_behind(Interpreter& interpreter, const Value& key) {
  if (class_of(key) != &PyLong_Type) return nullptr;
  // Behind the last one, counted from the end, nothing is cut off.
  if (is_known_integer(key, -1)) return interpreter.none();
  if (as<Known>(key) == nullptr) {
    const Value from_front =
        compare(interpreter, syntax::CompareOperator::GtE, key, interpreter.integer(0));
    if (!truth(interpreter, from_front, -1)) return nullptr;
  }
  return binary(interpreter, syntax::Operator::Add, key, interpreter.integer(1));
}

Value take_element(Interpreter& interpreter, Sequence& list, const Value& key) {
  const Value behind = position_behind(interpreter, key);
  if (behind == nullptr) return nullptr;
  const auto whole = list.elements.rolled();
  const Value element = element_at(interpreter, *whole, key);
  auto rest = with_part(interpreter, whole, key, behind, ElementList());
  if (rest == nullptr) return nullptr;
  list.elements = ElementList(std::move(rest));
  return element;
}

// --- order --------------------------------------------------------------------------------------

Value key_of(Interpreter& interpreter, const Value& key, const Value& element) {
  if (key == nullptr || is_none(key)) return element;
  CallArguments one;
  one.positional = {element};
  return call(interpreter, key, one);
}

namespace {

/// The keys of all elements of a list of the graph, by a loop.
std::shared_ptr<const Rolled> keys_of(Interpreter& interpreter,
                                      const std::shared_ptr<const Rolled>& list, const Value& key) {
  if (key == nullptr || is_none(key)) return list;
  auto keys = std::make_shared<Sequence>(true);
  accumulated(interpreter, *list, interpreter.boolean(false),
              [&](const Value& nothing, const Value& element) {
                append(interpreter, *keys, key_of(interpreter, key, element));
                return nothing;
              });
  return keys->elements.rolled();
}

bool is_of_numbers(const Rolled* list) {
  return list != nullptr && list->form.kind == ElementForm::Kind::number;
}

graph::Value* order_of(Interpreter& interpreter, const Rolled& keys, bool descends) {
  graph::Builder& builder = interpreter.builder();
  return op::list_order(builder, {keys.lists.front(), builder.constant(descends)});
}

/// A list whose elements are all made of numbers.
bool has_numbers_only(const ElementForm& form) {
  if (form.kind == ElementForm::Kind::tuple)
    return std::ranges::all_of(form.parts, has_numbers_only);
  return form.kind == ElementForm::Kind::number;
}

std::shared_ptr<Rolled> picked(Interpreter& interpreter, const Rolled& list, graph::Value* order) {
  auto result = std::make_shared<Rolled>(list);
  result->undecided = false;
  for (graph::Value*& each : result->lists)
    each = op::list_pick(interpreter.builder(), {each, order});
  result->memory = memory_with(list.form, {list.memory});
  return result;
}

}  // namespace

std::shared_ptr<const Rolled> sorted_list(Interpreter& interpreter,
                                          const std::shared_ptr<const Rolled>& given,
                                          const Value& key, bool descends) {
  if (!has_numbers_only(given->form)) return nullptr;
  const auto list = facing(interpreter, *given, false);
  auto keys = keys_of(interpreter, list, key);
  if (!is_of_numbers(keys.get())) return nullptr;
  keys = facing(interpreter, *keys, false);
  return picked(interpreter, *list, order_of(interpreter, *keys, descends));
}

std::optional<std::vector<Value>> sorted_numbers(Interpreter& interpreter,
                                                 const std::vector<Value>& elements,
                                                 const std::vector<Value>& keys, bool descends) {
  const auto is_number_of_run = [](const Value& key) { return as<Number>(key) != nullptr; };
  if (std::ranges::none_of(keys, is_number_of_run)) return std::nullopt;
  std::string why;
  // Others than numbers are the same objects in another order.
  const auto form = common_form(interpreter, elements, why);
  const auto form_of_keys = common_form(interpreter, keys, why);
  if (!form || !form_of_keys || form->kind != ElementForm::Kind::number ||
      form_of_keys->kind != ElementForm::Kind::number)
    return std::nullopt;
  const TestKey nothing{python::Object(), -1};
  const auto of_keys = roll(interpreter, nothing, *form_of_keys, keys, false);
  const auto list = roll(interpreter, nothing, *form, elements, false);
  const auto sorted = picked(interpreter, *list, order_of(interpreter, *of_keys, descends));
  std::vector<Value> known;
  for (size_t i = 0; i < elements.size(); ++i)
    known.push_back(element_at(interpreter, *sorted, interpreter.integer(static_cast<int64_t>(i))));
  return known;
}

Value position_in(Interpreter& interpreter, const std::shared_ptr<const Rolled>& list,
                  const Value& value) {
  if (!is_of_numbers(list.get()) || !is_number(value)) return nullptr;
  const auto in_order = facing(interpreter, *list, false);
  graph::Value* wanted = interpreter.graph_value(value);
  if (wanted->type != list->form.type) {
    const bool is_small = is_known_integer(value, 0) || is_known_integer(value, 1);
    if (!is_small || list->form.type.kind != Type::Kind::f64) return nullptr;
    wanted = op::scalar_float(interpreter.builder(), {wanted});
  }
  return interpreter.number(
      op::list_find(interpreter.builder(), {in_order->lists.front(), wanted}));
}

void append(Interpreter& interpreter, Sequence& list, const Value& value) {
  if (list.elements.rolled() == nullptr) return list.elements.push_back(value);
  std::shared_ptr<const Rolled> longer = grown(interpreter, *list.elements.rolled(), value, false);
  if (longer == nullptr)
    longer = joined(interpreter, list.elements, ElementList(std::vector<Value>{value}));
  list.elements = ElementList(std::move(longer));
}

}  // namespace janus::frontend
