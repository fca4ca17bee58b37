#include "frontend/recursion/outside_changes.h"

#include <algorithm>

#include "frontend/core/heap.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

using graph::Type;
using python::Object;

bool OutsideChanges::existed(const AbstractValue& object) const {
  const auto* changeable = dynamic_cast<const Changeable*>(&object);
  return changeable != nullptr && existed(changeable);
}

void OutsideChanges::collect() {
  // By index: what is found may reach more tensors of the entry.
  for (size_t i = 0; i < before_.objects.objects().size(); ++i) {
    const Snapshot::Saved saved = before_.objects.objects()[i];
    if (saved.alive()) collect_object(*saved.object, saved.state);
  }
  collect_state();
}

/// Of each member of the state, whether and how it goes in and out.
void OutsideChanges::collect_state() {
  // What has become of values is known behind the function; what an activation finds out about
  // classes, and what it casts, is its own.
  const auto& [modes, heap, history, known_classes, casts, effects] =
      static_cast<const InterpreterState&>(interpreter_);
  if (modes != before_.state.modes) refuse("it changes the grad mode");
  if (effects.size() != before_.state.effects.size()) refuse("it prints");
  collect_heap();
}

// --- places -------------------------------------------------------------------------------------

Rebuilding OutsideChanges::begin_places(graph::Block& block) const {
  Rebuilding values(interpreter_, [&](const Type& type) {
    return interpreter_.builder().graph().new_parameter(block, type);
  });
  for (const OutsidePlace& place : function_.places)
    place.set(interpreter_, values.make(place.spec));
  return values;
}

Flattening OutsideChanges::end_places() {
  Flattening values(
      interpreter_, [](const std::string&) { return true; },
      [&](const AbstractValue& object) { return existed(object); });
  for (OutsidePlace& place : function_.places) {
    TreeSpec spec = values.take(place.get(interpreter_), place.describe());
    if (join_strides(place.spec, spec)) function_.at_fixpoint = false;
    if (!same_spec(place.spec, spec)) refuse(place.describe() + " changes its kind");
    if (add_classes(place.spec, spec)) function_.at_fixpoint = false;
  }
  return values;
}

void OutsideChanges::add_place(OutsidePlace place, const Value& initial) {
  const auto& places = function_.places;
  if (std::any_of(places.begin(), places.end(),
                  [&](const OutsidePlace& each) { return each.is_same(place); }))
    return;
  if (initial == nullptr) refuse("it makes " + place.describe());
  function_.at_fixpoint = false;
  Flattening values(
      interpreter_, [](const std::string&) { return true; },
      [](const AbstractValue&) { return true; });
  place.spec = values.take(initial, place.describe());
  function_.places.push_back(std::move(place));
}

void OutsideChanges::collect_object(Changeable& object, const ChangeableState& before) {
  const ChangeableState now = state_of(object);
  if (function_.grows(&object) || same_but_for_reads(before, now)) return;
  if (auto* variables = dynamic_cast<Variables*>(&object))
    return collect_variables(*variables, std::get<VariableValues>(before));
  if (auto* tensor = dynamic_cast<Tensor*>(&object))
    return collect_contents(*tensor, std::get<TensorState>(before));
  if (auto* sequence = dynamic_cast<Sequence*>(&object))
    return collect_elements(*sequence, std::get<Elements>(before));
  auto* dictionary = dynamic_cast<Dictionary*>(&object);
  if (dictionary == nullptr) refuse("it changes something outside");
  if (!dictionary->object)  // else as its heap's table says
    collect_items(*dictionary, std::get<Items>(before));
}

void OutsideChanges::collect_items(Dictionary& dictionary, const Items& before) {
  const Items& now = dictionary.items;
  const bool same_keys =
      std::equal(before.begin(), before.end(), now.begin(), now.end(),
                 [](const auto& a, const auto& b) { return a.first.is(b.first.get()); });
  if (!same_keys) refuse("it makes or deletes an item or attribute");
  for (size_t i = 0; i < before.size(); ++i)
    if (!same_value(before[i].second, now[i].second))
      add_place(OutsidePlace::element(dictionary, i), before[i].second);
}

void OutsideChanges::collect_variables(Variables& variables, const VariableValues& before) {
  for (const auto& [name, value] : variables.values) {
    auto initial = before.find(name);
    if (initial == before.end())
      add_place(OutsidePlace::variable(variables, name), nullptr);
    else if (!same_value(initial->second, value))
      add_place(OutsidePlace::variable(variables, name), initial->second);
  }
  if (variables.values.size() < before.size()) refuse("it deletes a variable of outside");
}

void OutsideChanges::collect_contents(Tensor& tensor, const TensorState& before) {
  if (tensor.source != nullptr) refuse("it writes a tensor that existed before the call");
  if (tensor.data_replaced != before.data_replaced)
    refuse("it sets the attribute data of a tensor");
  if (!is_same_tensor(before, tensor)) refuse("it puts a tensor on other memory");
  if (tensor.requires_grad || before.requires_grad || !same_grad(before, tensor))
    refuse("it writes a tensor that has a gradient");
  auto initial = std::make_shared<Tensor>();
  initial->value = before.value;
  add_place(OutsidePlace::contents(tensor), initial);
}

void OutsideChanges::collect_elements(Sequence& sequence, const Elements& initial) {
  const bool rolls = initial.rolled() != nullptr || sequence.elements.rolled() != nullptr;
  if (rolls || initial.size() != sequence.elements.size()) return begin_growth(sequence, initial);
  for (size_t i = 0; i < initial.size(); ++i)
    if (!same_value(initial[i], sequence.elements[i]))
      add_place(OutsidePlace::element(sequence, i), initial[i]);
}

void OutsideChanges::collect_heap() {
  const Heap now = interpreter_.heap;
  for (PyObject* identity : now.table_order()) {
    const Heap::Table& table = *now.table(identity);
    const Heap::Table* before = heap_.table(identity);
    if (table.cleared != (before != nullptr && before->cleared)) refuse("it clears a container");
    for (const Heap::Change& change : table.changes) collect_change(table, before, change);
  }
  for (PyObject* object : now.list_order()) {
    const Heap::List& list = now.list_at(object);
    if (now.has_opened(object, heap_)) {
      if (list.shadow->elements != before_.elements_of(object, list))
        refuse("it changes a list that existed before the call");
      continue;
    }
    if (heap_.has_list(object)) continue;
    // From now on as if it had been reached before, with nothing appended to it.
    Heap::List& before = heap_.list_of(object, list.source);
    before.paths.insert(list.paths.begin(), list.paths.end());
    before_.objects.add(*before.appended);
    function_.at_fixpoint = false;
  }
}

void OutsideChanges::collect_change(const Heap::Table& table, const Heap::Table* before,
                                    const Heap::Change& change) {
  Held initial;
  for (size_t i = 0; before != nullptr && i < before->changes.size(); ++i)
    if (before->changes[i].key.is(change.key.get())) initial = before->changes[i].held;
  if (same_held(initial, change.held)) return;
  if (change.held.is_absent()) refuse("it deletes an attribute or item");
  if (initial.is_unknown()) initial = interpreter_.held_at_entry(table, change);
  add_place(OutsidePlace::change(table, change), initial.is_value() ? initial.value() : nullptr);
}

// --- lists that grow ----------------------------------------------------------------------------

void OutsideChanges::begin_lists(graph::Block& block) const {
  for (const GrowingList& growth : function_.growths) {
    auto list = std::make_shared<Rolled>();
    list->form = growth.form;
    list->front = growth.front;
    list->undecided = growth.undecided;
    list->memory = growth.memory;
    for (const Type& type : list_types(growth.form))
      list->lists.push_back(interpreter_.builder().graph().new_parameter(block, type));
    growth.list->elements = ElementList(std::move(list));
  }
}

void OutsideChanges::check_lists(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    GrowingList& growth = function_.growths[i];
    const Rolled* end = growth.list->elements.rolled().get();
    if (end == nullptr) refuse("a list is emptied or filled anew in it");
    if (end->front != growth.front) function_.at_fixpoint = false;
    growth.front = end->front;
    if (end->memory != growth.memory) follow_memory(*growth.memory, end->memory);
    growth.undecided = growth.undecided && end->undecided;
  }
}

void OutsideChanges::begin_growth(Sequence& sequence, const Elements& initial) {
  if (!sequence.is_list || sequence.source != nullptr || sequence.viewed != nullptr)
    refuse("it changes a list that existed before the call");
  function_.at_fixpoint = false;
  GrowingList growth;
  growth.list = std::static_pointer_cast<Sequence>(sequence.shared_from_this());
  for (PyObject* object : heap_.list_order())
    if (heap_.list_at(object).appended == growth.list) growth.real = Object::borrow(object);
  const Rolled* before = initial.rolled().get();
  const Rolled* end = sequence.elements.rolled().get();
  if (before != nullptr || end != nullptr) {
    growth.form = (before != nullptr ? before : end)->form;
    growth.front = (end != nullptr ? end : before)->front;
  } else {
    const std::vector<Value>&first = initial.known(), &now = sequence.elements.known();
    bool back = now.size() >= first.size() && std::equal(first.begin(), first.end(), now.begin());
    if (!back) refuse("it changes a list other than by appending to it");
    std::string why;
    auto form = common_form(interpreter_, now, why);
    if (!form) refuse(why);
    growth.form = *form;
  }
  function_.growths.push_back(std::move(growth));
}

}  // namespace janus::frontend
