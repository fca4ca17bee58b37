#include "frontend/control/list_order.h"

#include <algorithm>

#include "frontend/control/list_parts.h"
#include "frontend/control/list_reductions.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/operations.h"
#include "frontend/values/number_kinds.h"
#include "ops/list.h"

namespace janus::frontend {

using graph::Type;

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

graph::Value* order_of(GraphWriter& writer, const Rolled& keys, bool descends) {
  graph::Builder& builder = writer.builder();
  return op::list_order(builder, {keys.lists.front(), builder.constant(descends)});
}

/// A list whose elements are all made of numbers.
bool has_numbers_only(const ElementForm& form) {
  if (form.kind == ElementForm::Kind::tuple)
    return std::ranges::all_of(form.parts, has_numbers_only);
  return form.kind == ElementForm::Kind::number;
}

std::shared_ptr<Rolled> picked(GraphWriter& writer, const Rolled& list, graph::Value* order) {
  auto result = std::make_shared<Rolled>(list);
  result->undecided = false;
  for (graph::Value*& each : result->lists) each = op::list_pick(writer.builder(), {each, order});
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
    const bool is_small = known_integer(value) == 0 || known_integer(value) == 1;
    if (!is_small || list->form.type.kind != Type::Kind::f64) return nullptr;
    wanted = op::scalar_float(interpreter.builder(), {wanted});
  }
  return interpreter.number(
      op::list_find(interpreter.builder(), {in_order->lists.front(), wanted}));
}

}  // namespace janus::frontend
