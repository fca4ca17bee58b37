#include "frontend/journal.h"

#include <algorithm>
#include <map>

#include "frontend/containers.h"
#include "frontend/effects.h"
#include "frontend/number_kinds.h"
#include "frontend/rearranged.h"
#include "frontend/recursion.h"
#include "frontend/tensor.h"

namespace janus::frontend {

using speculate::Template;

namespace {

/// Puts items in the place of results, and gives what these are.
void take_results(Interpreter& interpreter, Template& form, std::vector<graph::Value*>& values) {
  for (Template& child : form.children) take_results(interpreter, child, values);
  if (form.kind != Template::Kind::result) return;
  graph::Value* const value = interpreter.results()[form.index];
  const auto place = std::ranges::find(values, value);
  form.kind = Template::Kind::item;
  form.index = static_cast<size_t>(place - values.begin());
  if (place == values.end()) values.push_back(value);
}

/// Whether the two make the same, whatever numbers the places of their parts have.
bool is_same(const Template& a, const Template& b, std::map<size_t, size_t>& places) {
  const bool same_object = a.object.is(b.object.get()) ||
                           (a.object && b.object && same_constant(a.object.get(), b.object.get()));
  if (a.place != Template::kNoPlace) places[a.place] = b.place;
  const auto index = [&](size_t of_a) {
    const auto place = places.find(of_a);
    return a.kind == Template::Kind::shared && place != places.end() ? place->second : of_a;
  };
  return a.kind == b.kind && same_object && a.source == b.source && index(a.index) == b.index &&
         (a.place == Template::kNoPlace) == (b.place == Template::kNoPlace) &&
         a.keyword_names == b.keyword_names &&
         std::ranges::equal(a.children, b.children, [&](const Template& x, const Template& y) {
           return is_same(x, y, places);
         });
}

}  // namespace

Journal::Rounds::Rounds(Interpreter& interpreter) : interpreter_(interpreter) {
  ++interpreter_.journal.open_;
}

Journal::Rounds::~Rounds() { --interpreter_.journal.open_; }

void Journal::Rounds::finish() {
  if (interpreter_.journal.open_ == 1) interpreter_.journal.show(interpreter_);
}

void Journal::add(Interpreter& interpreter, const Template& call) {
  if (interpreter.recursion().is_building())
    interpreter.refuse(ReasonCode::limit, "a recursion with a loop that prints");
  ++count_;
  Template form = call;
  std::vector<graph::Value*> values;
  take_results(interpreter, form, values);
  for (const graph::Value* value : values)
    if (!value->type.is_tensor() && !value->type.is_number())
      interpreter.refuse(ReasonCode::dynamic_value,
                         "a text of a list that a round of a loop makes");
  const size_t which = entry_of(interpreter, std::move(form), values);
  if (order_ == nullptr) order_ = new_list(interpreter);
  append(interpreter, *order_, interpreter.integer(static_cast<int64_t>(which)));
  for (size_t i = 0; i < values.size(); ++i)
    append(interpreter, *entries_[which].values[i],
           values[i]->type.is_tensor() ? Value(make_tensor(interpreter, values[i], false))
                                       : interpreter.number(values[i]));
}

size_t Journal::entry_of(Interpreter& interpreter, Template call,
                         const std::vector<graph::Value*>& values) {
  std::vector<graph::Type> types;
  for (const graph::Value* value : values) types.push_back(value->type);
  const auto known = std::ranges::find_if(entries_, [&](const Entry& entry) {
    std::map<size_t, size_t> places;
    return entry.types == types && is_same(entry.call, call, places);
  });
  if (known != entries_.end()) return static_cast<size_t>(known - entries_.begin());
  Entry entry{std::move(call), {}, std::move(types)};
  for (size_t i = 0; i < values.size(); ++i) entry.values.push_back(new_list(interpreter));
  entries_.push_back(std::move(entry));
  return entries_.size() - 1;
}

/// It was there, and empty, all the time.
std::shared_ptr<Sequence> Journal::new_list(Interpreter& interpreter) const {
  auto list = std::make_shared<Sequence>(true);
  interpreter.existed_before(*list);
  return list;
}

namespace {

/// The whole of a list that grew, as a result.
Template result_of(Interpreter& interpreter, const Rolled& list) {
  const auto in_order = facing(interpreter, list, false);
  Template result;
  result.kind = Template::Kind::result;
  result.index = interpreter.add_result(in_order->lists.front());
  return result;
}

}  // namespace

Template Journal::each_of(Interpreter& interpreter, const Entry& entry) const {
  Template each;
  each.kind = Template::Kind::each;
  each.children.push_back(entry.call);
  for (const auto& list : entry.values)
    if (const Rolled* values = rolled(list))
      each.children.push_back(result_of(interpreter, *values));
  return each;
}

std::optional<Template> Journal::each(Interpreter& interpreter) const {
  const bool is_one = entries_.size() == 1 && !entries_[0].values.empty() &&
                      std::ranges::all_of(entries_[0].values,
                                          [](const auto& list) { return rolled(list) != nullptr; });
  return is_one ? std::optional(each_of(interpreter, entries_[0])) : std::nullopt;
}

void Journal::show(Interpreter& interpreter) {
  if (order_ == nullptr || rolled(order_) == nullptr) return;
  Template replay;
  replay.kind = Template::Kind::replay;
  replay.children.push_back(result_of(interpreter, *rolled(order_)));
  for (const Entry& entry : entries_) {
    replay.children.push_back(each_of(interpreter, entry));
    for (const auto& list : entry.values) list->elements = ElementList();
  }
  order_->elements = ElementList();
  show_effect(interpreter, std::move(replay));
}

}  // namespace janus::frontend
