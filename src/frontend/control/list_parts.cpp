#include "frontend/control/list_parts.h"

#include <algorithm>
#include <limits>

#include "frontend/control/symbolic_lists.h"
#include "frontend/core/class_of.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/operations.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/restart.h"
#include "frontend/values/symbolic_list.h"
#include "ops/list.h"

namespace janus::frontend {

using graph::Type;

namespace {

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
    throw CannotMerge{like.test, form ? "lists with elements of different forms are joined" : why};
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

namespace {

/// One behind the other. `apart`: they are known to hold different tensors.
std::shared_ptr<const Rolled> in_a_row(Interpreter& interpreter, const ElementList& first,
                                       const ElementList& second, bool apart) {
  const Rolled& like = first.rolled() != nullptr ? *first.rolled() : *second.rolled();
  const auto before = as_list(interpreter, like, first);
  const auto behind = as_list(interpreter, like, second);
  if (before == nullptr || behind == nullptr) return before == nullptr ? behind : before;
  if (before->form != behind->form)
    throw CannotMerge{like.test, "lists with elements of different forms are joined"};
  auto both = std::make_shared<Rolled>(*before);
  both->undecided = false;
  for (size_t i = 0; i < both->lists.size(); ++i)
    both->lists[i] = op::list_join(interpreter.builder(), {before->lists[i], behind->lists[i]});
  both->length = before->length == nullptr || behind->length == nullptr
                     ? nullptr
                     : binary(interpreter, syntax::Operator::Add, before->length, behind->length);
  both->memory = memory_with(both->form, {before->memory, behind->memory});
  if (!apart && holds_tensors(both->form) && may_overlap(*before->memory, *behind->memory))
    both->memory->uncertain_alias = true;
  return both;
}

}  // namespace

std::shared_ptr<const Rolled> joined(Interpreter& interpreter, const ElementList& first,
                                     const ElementList& second) {
  return in_a_row(interpreter, first, second, /*apart=*/false);
}

std::shared_ptr<const Rolled> with_part(Interpreter& interpreter,
                                        const std::shared_ptr<const Rolled>& list,
                                        const Value& start, const Value& stop,
                                        const ElementList& part) {
  std::shared_ptr<const Rolled> before = part_of(interpreter, list, interpreter.integer(0), start);
  std::shared_ptr<const Rolled> behind = part_of(interpreter, list, stop, interpreter.none());
  if (before == nullptr || behind == nullptr) return nullptr;
  if (is_none(start) || known_integer(start) == 0) before = nullptr;
  if (is_none(stop)) behind = nullptr;
  ElementList whole = part;
  const auto between = as_list(interpreter, *list, part);
  if (between != nullptr) whole = ElementList(between);
  const auto add = [&](const std::shared_ptr<const Rolled>& other, bool in_front) {
    if (other == nullptr) return;
    const ElementList added(other);
    whole = ElementList(in_front ? in_a_row(interpreter, added, whole, /*apart=*/true)
                                 : in_a_row(interpreter, whole, added, /*apart=*/true));
  };
  add(before, true);
  add(behind, false);
  const auto made = as_list(interpreter, *list, whole);
  if (made == nullptr) return roll(interpreter, list->test, list->form, {}, false);
  if (between != nullptr && holds_tensors(list->form) &&
      may_overlap(*between->memory, *list->memory))
    made->memory->uncertain_alias = true;
  return made;
}

Value position_behind(Interpreter& interpreter, const Value& key) {
  if (class_of(key) != &PyLong_Type) return nullptr;
  // Behind the last one, counted from the end, nothing is cut off.
  if (known_integer(key) == -1) return interpreter.none();
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
  const Value element = element_at(interpreter, *whole, key, /*taken=*/true);
  auto rest = with_part(interpreter, whole, key, behind, ElementList());
  if (rest == nullptr) return nullptr;
  list.elements = ElementList(std::move(rest));
  return element;
}

void append(Interpreter& interpreter, Sequence& list, const Value& value) {
  if (list.elements.rolled() == nullptr) return list.elements.push_back(value);
  std::shared_ptr<const Rolled> longer = grown(interpreter, *list.elements.rolled(), value, false);
  if (longer == nullptr)
    longer = joined(interpreter, list.elements, ElementList(std::vector<Value>{value}));
  list.elements = ElementList(std::move(longer));
}

}  // namespace janus::frontend
