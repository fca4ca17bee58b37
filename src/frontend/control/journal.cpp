#include "frontend/control/journal.h"

#include <algorithm>
#include <map>

#include "frontend/control/effects.h"
#include "frontend/control/list_parts.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/locks.h"
#include "frontend/core/object_kinds.h"
#include "frontend/core/operations.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/constants.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

using speculate::Template;

namespace {

/// Puts items in the place of results, and gives what these are.
void take_results(const GraphWriter& writer, Template& form, std::vector<graph::Value*>& values) {
  for (Template& child : form.children) take_results(writer, child, values);
  if (form.kind != Template::Kind::result) return;
  graph::Value* const value = writer.results()[form.index];
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

Journal::Journal(Interpreter& interpreter) : Journal(interpreter, interpreter.journal) {}

Journal::Journal(Interpreter& interpreter, JournalState& state)
    : interpreter_(interpreter), state_(state) {}

Journal::Iterations::Iterations(Interpreter& interpreter) : interpreter_(interpreter) {
  ++interpreter_.journal.open;
}

Journal::Iterations::~Iterations() { --interpreter_.journal.open; }

void Journal::Iterations::finish() {
  if (interpreter_.journal.open == 1) Journal(interpreter_).show();
}

void Journal::add(const Template& call) {
  if (interpreter_.recursion().is_building())
    interpreter_.refuse(ReasonCode::limit, "a recursion with a loop that prints");
  ++state_.count;
  Template form = call;
  std::vector<graph::Value*> values;
  take_results(interpreter_, form, values);
  for (const graph::Value* value : values)
    if (!value->type.is_tensor() && !value->type.is_number())
      interpreter_.refuse(ReasonCode::dynamic_value,
                          "a text of a list that an iteration of a loop makes");
  const size_t which = entry_of(std::move(form), values);
  if (state_.order == nullptr) state_.order = new_list();
  append(interpreter_, *state_.order, interpreter_.integer(static_cast<int64_t>(which)));
  for (size_t i = 0; i < values.size(); ++i)
    append(interpreter_, *state_.entries[which].values[i],
           values[i]->type.is_tensor() ? Value(make_tensor(interpreter_, values[i], false))
                                       : interpreter_.number(values[i]));
}

size_t Journal::entry_of(Template call, const std::vector<graph::Value*>& values) {
  std::vector<graph::Type> types;
  for (const graph::Value* value : values) types.push_back(value->type);
  const auto known = std::ranges::find_if(state_.entries, [&](const JournalEntry& entry) {
    std::map<size_t, size_t> places;
    return entry.types == types && is_same(entry.call, call, places);
  });
  if (known != state_.entries.end()) return static_cast<size_t>(known - state_.entries.begin());
  JournalEntry entry{std::move(call), {}, std::move(types)};
  for (size_t i = 0; i < values.size(); ++i) entry.values.push_back(new_list());
  state_.entries.push_back(std::move(entry));
  return state_.entries.size() - 1;
}

/// It was there, and empty, all the time.
std::shared_ptr<Sequence> Journal::new_list() const {
  auto list = std::make_shared<Sequence>(true);
  interpreter_.existed_before(*list);
  return list;
}

namespace {

/// The whole of a list that grew, as a result.
Template result_of(GraphWriter& writer, const Rolled& list) {
  const auto in_order = facing(writer, list, false);
  Template result;
  result.kind = Template::Kind::result;
  result.index = writer.add_result(in_order->lists.front());
  return result;
}

}  // namespace

Template Journal::each_of(const JournalEntry& entry) const {
  Template each;
  each.kind = Template::Kind::each;
  each.children.push_back(entry.call);
  for (const auto& list : entry.values)
    if (const Rolled* values = rolled(list))
      each.children.push_back(result_of(interpreter_, *values));
  return each;
}

std::optional<Template> Journal::each() const {
  const bool is_one = state_.entries.size() == 1 && !state_.entries[0].values.empty() &&
                      std::ranges::all_of(state_.entries[0].values,
                                          [](const auto& list) { return rolled(list) != nullptr; });
  return is_one ? std::optional(each_of(state_.entries[0])) : std::nullopt;
}

void Journal::show() {
  if (state_.order == nullptr || rolled(state_.order) == nullptr) return;
  Template replay;
  replay.kind = Template::Kind::replay;
  replay.children.push_back(result_of(interpreter_, *rolled(state_.order)));
  for (const JournalEntry& entry : state_.entries) {
    replay.children.push_back(each_of(entry));
    for (const auto& list : entry.values) list->elements = ElementList();
  }
  state_.order->elements = ElementList();
  show_effect(interpreter_, std::move(replay));
}

Value defer(Interpreter& interpreter, python::Object callable, const CallArguments& arguments,
            PyTypeObject* type) {
  auto deferred = std::make_shared<Deferred>();
  deferred->type = python::Object::borrow(reinterpret_cast<PyObject*>(type));
  deferred->recipe.kind = speculate::Template::Kind::call;
  deferred->recipe.object = std::move(callable);
  for (const Value& value : arguments.positional)
    deferred->recipe.children.push_back(make_template(interpreter, value));
  for (const auto& [name, value] : arguments.keywords) {
    deferred->recipe.keyword_names.push_back(name);
    deferred->recipe.children.push_back(make_template(interpreter, value));
  }
  return deferred;
}

namespace {

/// What is shown under a lock would be shown behind its end, among what other threads show. That a
/// cache of a function counts can't be seen so.
void expect_no_lock(Interpreter& interpreter, const Template& call) {
  if (lock_in_use(interpreter.heap) == nullptr) return;
  if (!call.object || !is_cached_function(Py_TYPE(call.object.get())))
    interpreter.refuse(ReasonCode::unknown_callable, "what is shown under a lock");
}

}  // namespace

void add_effect(Interpreter& interpreter, Template call) {
  expect_no_lock(interpreter, call);
  if (!interpreter.journal.is_open()) return show_effect(interpreter, std::move(call));
  Journal(interpreter).add(call);
  interpreter.mark(speculate::LineMark::Kind::effect);
}

void call_behind_run(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments) {
  Value call = defer(interpreter, python::Object::borrow(callable), arguments, Py_TYPE(Py_None));
  add_effect(interpreter, as<Deferred>(call)->recipe);
}

}  // namespace janus::frontend
