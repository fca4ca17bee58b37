// What an iteration has changed, object by object: variables, containers, contents of tensors, and
// objects that outlive the call.
#include <algorithm>

#include "frontend/control/loop.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/heap.h"
#include "frontend/core/keys.h"
#include "frontend/core/recursion_state.h"
#include "frontend/values/symbolic_list.h"

namespace janus::frontend {

bool Loop::collect_changes() {
  at_fixpoint_ = true;
  tracks_ = needs_iteration_ = moves_ = holds_unseen_ = false;
  replaced_.clear();
  kept_.clear();
  heap_pending_.clear();
  ends_.clear();
  end_roots_.clear();
  collect_objects();
  collect_state();
  check_replacements();
  for (const auto& [place, pending] : heap_pending_) {
    ends_.insert(ends_.end(), pending.ends.begin(), pending.ends.end());
    end_roots_.insert(end_roots_.end(), pending.roots.begin(), pending.roots.end());
  }
  return at_fixpoint_;
}

/// For each member of the state: whether and how it is carried.
void Loop::collect_state() {
  // What has become of values is known behind the loop (run). What an iteration finds out about
  // classes, and what it casts, is the iteration's own.
  const auto& [modes, heap, history, known_classes, casts, effects] =
      static_cast<const InterpreterState&>(interpreter_);
  if (modes != before_.state.modes) fail("it changes the grad mode or an autocast");
  if (effects.size() != before_.state.effects.size()) fail("it has an effect outside");
  collect_heap();
}

void Loop::collect_objects() {
  for (size_t i = 0; i < before_.objects.objects().size(); ++i) {
    const Snapshot::Saved& saved = before_.objects.objects()[i];
    if (!saved.alive()) continue;
    if (auto* tensor = dynamic_cast<Tensor*>(saved.object)) {
      collect_contents(*tensor, std::get<TensorState>(saved.state));
    } else if (auto* variables = dynamic_cast<Variables*>(saved.object)) {
      collect_variables(*variables, std::get<VariableValues>(saved.state));
    } else if (auto* sequence = dynamic_cast<Sequence*>(saved.object)) {
      const auto& initial = std::get<Elements>(saved.state);
      if (collect_list(*sequence, initial)) continue;
      for (size_t e = 0; e < initial.size(); ++e)
        join_slot(*saved.object, key_of(e), initial[e], sequence->elements[e], false);
    } else if (auto* dictionary = dynamic_cast<Dictionary*>(saved.object)) {
      const auto& initial = std::get<Items>(saved.state);
      bool same = std::equal(
          initial.begin(), initial.end(), dictionary->items.begin(), dictionary->items.end(),
          [](const auto& a, const auto& b) { return a.first.is(b.first.get()); });
      if (!same) fail("a dict gets or loses keys in it");
      for (size_t e = 0; e < initial.size(); ++e)
        join_slot(*saved.object, key_of(e), initial[e].second, dictionary->items[e].second, false);
    } else if (!same_state(saved.state, state_of(*saved.object))) {
      fail("it changes a set or takes from an iterator");
    } else if (const auto* iterator = dynamic_cast<Iterator*>(saved.object)) {
      // The list that it goes over is not known.
      holds_unseen_ |= iterator->type == &PyListIter_Type;
    }
  }
}

void Loop::collect_heap() {
  const Heap now = interpreter_.heap;
  for (PyObject* identity : now.table_order()) collect_table(*now.table(identity));
  for (PyObject* object : now.list_order()) collect_real_list(object, now.list_at(object));
}

void Loop::collect_table(const Heap::Table& now) {
  PyObject* identity = now.target.table;
  const Heap::Table* before = heap_.table(identity);
  if (now.cleared != (before != nullptr && before->cleared)) fail("it clears a container");
  for (const Heap::Change& change : now.changes)
    if (!place_of(identity, change)) add_place(now, change);
  before = heap_.table(identity);
  if (before == nullptr) return;
  if (before->changes.size() != now.changes.size()) fail("it deletes an attribute or item");
  for (const Heap::Change& change : now.changes) {
    const size_t place = *place_of(identity, change);
    const Held initial = before->changes[place].held;
    if (initial.is_value() != change.held.is_value())
      fail("it makes or deletes an attribute or item");
    if (!initial.is_value()) continue;
    Passage passage;
    auto known = heap_passages_.find({identity, place});
    if (known != heap_passages_.end()) passage = known->second;
    std::string why;
    pending_ = {};
    if (!join(passage, initial.value(), change.held.value(), why)) fail_first_iteration(why);
    if (passage.kind == Passage::Kind::same) continue;
    heap_passages_[{identity, place}] = passage;
    heap_pending_[{identity, place}] = pending_;
  }
}

std::optional<size_t> Loop::place_of(PyObject* identity, const Heap::Change& wanted) {
  const Heap::Table* before = heap_.table(identity);
  for (size_t i = 0; before != nullptr && i < before->changes.size(); ++i)
    if (same_key(interpreter_, before->changes[i].key.get(), wanted.key.get())) return i;
  return std::nullopt;
}

void Loop::add_place(const Heap::Table& now, const Heap::Change& change) {
  const Held at_entry = interpreter_.held_at_entry(now, change);
  if (!at_entry.is_value()) fail_first_iteration("it makes an attribute or item");
  Heap::Table& table = heap_.table_of(now.target);
  table.paths.insert(now.paths.begin(), now.paths.end());
  table.changes.push_back({change.key, at_entry, change.at_entry});
  at_fixpoint_ = false;
}

void Loop::collect_real_list(PyObject* object, const Heap::List& now) {
  if (interpreter_.heap.has_opened(object, heap_)) {
    if (now.shadow->elements != before_.elements_of(object, now))
      fail("a list that existed before the call changes in it");
    return;
  }
  if (heap_.has_list(object)) return;  // what it holds is that of a list like others
  Heap::List& list = heap_.list_of(object, now.source);
  list.paths.insert(now.paths.begin(), now.paths.end());
  before_.objects.add(*list.appended);
  at_fixpoint_ = false;
}

bool Loop::collect_list(Sequence& sequence, const Elements& initial) {
  const Rolled* end = sequence.elements.rolled().get();
  auto growth = growth_.find(&sequence);
  if (growth == growth_.end()) {
    if (end == nullptr && initial.size() == sequence.elements.size()) return false;
    if (sequence.elements == initial) return true;
    begin_growth(sequence, initial);
    return true;
  }
  if (end == nullptr) fail("a list is emptied or filled anew in it");
  if (growth->second.form.tracked) tracks_ = true;
  growth->second.left = end->memory;
  if (end->memory != growth->second.memory) follow_memory(*growth->second.memory, end->memory);
  if (end->front != growth->second.front) {
    growth->second.front = end->front;
    growth->second.undecided = false;
    at_fixpoint_ = false;
  }
  ends_.insert(ends_.end(), end->lists.begin(), end->lists.end());
  return true;
}

void Loop::begin_growth(Sequence& sequence, const Elements& initial) {
  at_fixpoint_ = false;
  Growth growth;
  if (const Rolled* before = initial.rolled().get()) {
    growth.form = before->form;
    growth.front = before->front;
    growth_.emplace(&sequence, std::move(growth));
    return;
  }
  const Rolled* end = sequence.elements.rolled().get();
  if (!may_roll(sequence)) fail("a list grows or shrinks in it");
  std::string why;
  std::vector<Value> elements = initial.known();
  if (end == nullptr) {
    const std::vector<Value>& now = sequence.elements.known();
    const auto kept = static_cast<std::ptrdiff_t>(elements.size());
    const bool grew = now.size() > elements.size();
    const bool back = grew && std::equal(elements.begin(), elements.end(), now.begin());
    growth.front = grew && !back && std::equal(elements.begin(), elements.end(), now.end() - kept);
    elements.insert(elements.end(), now.begin(), now.end());
    for (const Value& element : elements) interpreter_.recursion().leave_to_run(element);
  }
  growth.undecided = initial.size() <= 1;
  auto form = end == nullptr ? common_form(interpreter_, elements, why) : end->form;
  if (!form) fail(why);
  for (const graph::Type& type : list_types(*form))
    if (is_sized_inside(type))
      fail("a list grows by elements whose size differs from iteration to iteration");
  if (end != nullptr) growth.front = end->front;
  growth.form = *form;
  growth_.emplace(&sequence, std::move(growth));
}

void Loop::collect_contents(Tensor& tensor, const TensorState& initial) {
  bool carried = passages_.contains(&tensor);
  bool becomes_tracked = tensor.requires_grad && !initial.requires_grad;
  if (becomes_tracked && tensor.source == nullptr && tensor.base == nullptr) {
    needs_iteration_ = true;
    if (tracked_contents_.insert(&tensor).second) {
      if (attempt_ > 0)
        fail_first_iteration("a tensor requires a gradient only after several iterations");
      at_fixpoint_ = false;
    }
  } else if (tensor.requires_grad != initial.requires_grad || tensor.is_leaf != initial.is_leaf) {
    fail_first_iteration("a tensor becomes part of autograd's graph in it");
  }
  if (!same_grad(initial, tensor)) fail("it sets a .grad");
  if (tensor.data_replaced != initial.data_replaced) fail("it sets the attribute data of a tensor");
  if (!is_same_tensor(initial, tensor)) fail("it puts a tensor on other memory");
  // A view is taken again of what its base then is.
  if (tensor.base != nullptr) return;
  if (!carried && tensor.value == initial.value) return;
  if (tensor.source != nullptr) fail("it writes a tensor that existed before the call");
  if (initial.requires_grad && initial.is_leaf) fail("it writes a leaf");
  tracks_ = tracks_ || tensor.requires_grad;
  if (!carried) {
    passages_[&tensor];
    at_fixpoint_ = false;
  }
  ends_.push_back(tensor.value);
}

void Loop::collect_variables(Variables& variables, const VariableValues& initial) {
  std::set<std::string> names;
  for (const auto& [name, value] : initial) names.insert(name);
  for (const auto& [name, value] : variables.values) names.insert(name);
  for (const std::string& name : names) {
    auto before = initial.find(name);
    auto now = variables.values.find(name);
    join_slot(variables, name, before == initial.end() ? nullptr : before->second,
              now == variables.values.end() ? nullptr : now->second, true);
  }
}

std::string Loop::key_of(size_t index) {
  std::string digits = std::to_string(index);
  return std::string(12 - std::min<size_t>(12, digits.size()), '0') + digits;
}

const Passage& Loop::passage_at(const Changeable& object, const std::string& key) {
  static const Passage same;
  auto passages = passages_.find(&object);
  if (passages == passages_.end()) return same;
  auto passage = passages->second.find(key);
  return passage == passages->second.end() ? same : passage->second;
}

void Loop::join_slot(Changeable& object, const std::string& key, const Value& initial,
                     const Value& end, bool may_be_unmerged) {
  Passage passage = passage_at(object, key);
  pending_ = {};
  std::string why;
  const auto replaced = replaced_;
  const bool was_at_fixpoint = at_fixpoint_;
  if (!join(passage, initial, end, why)) {
    if (!may_be_unmerged) fail_first_iteration(why);
    replaced_ = replaced;
    passage = Passage{Passage::Kind::unmerged, {}};
    passage.why_not = why;
    at_fixpoint_ = false;
    pending_ = {};
  }
  if (was_at_fixpoint && !at_fixpoint_ && dynamic_cast<const Variables*>(&object) != nullptr)
    changing_ = cat(": ", key, " still changes");
  if (passage.kind == Passage::Kind::same) return;
  passages_[&object][key] = passage;
  ends_.insert(ends_.end(), pending_.ends.begin(), pending_.ends.end());
  end_roots_.insert(end_roots_.end(), pending_.roots.begin(), pending_.roots.end());
}

}  // namespace janus::frontend
