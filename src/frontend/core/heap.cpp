#include "frontend/core/heap.h"

#include <algorithm>

#include "base/check.h"
#include "frontend/core/frames.h"
#include "frontend/core/keys.h"

namespace janus::frontend {

using python::Object;

// --- state --------------------------------------------------------------------------------------

namespace {

/// The last change of the key, or the end.
std::vector<Heap::Change>::iterator last_change(const Frames& frames,
                                                std::vector<Heap::Change>& changes, PyObject* key) {
  for (auto change = changes.end(); change != changes.begin();) {
    --change;
    if (same_key(frames, change->key.get(), key)) return change;
  }
  return changes.end();
}

}  // namespace

Held::Held(Value value) : state_(State::value), value_(std::move(value)) {
  TORCHJANUS_CHECK(value_ != nullptr, "heap: a place holds a value that is none");
}

Held Held::absent() {
  Held held;
  held.state_ = State::absent;
  return held;
}

const Value& Held::value() const {
  TORCHJANUS_CHECK(is_value(), "heap: a place without a value is read");
  return value_;
}

const Value& Held::value_or_null() const {
  TORCHJANUS_CHECK(!is_unknown(), "heap: a place at which nobody has looked is read");
  return value_;
}

bool is_changed(const Heap::List& list) {
  if (list.shadow == nullptr)
    return list.appended->elements.rolled() != nullptr || !list.appended->elements.empty();
  return list.shadow->elements != list.at_entry;
}

bool Heap::has_changed_list() const {
  return std::ranges::any_of(lists_, [](const auto& list) { return is_changed(list.second); });
}

bool Heap::has_opened(PyObject* list, const Heap& before) const {
  return list_at(list).shadow != nullptr &&
         (!before.has_list(list) || before.list_at(list).shadow == nullptr);
}

Heap::Table* Heap::table(PyObject* identity) {
  auto found = tables_.find(identity);
  return found == tables_.end() ? nullptr : &found->second;
}

const Heap::Table* Heap::table(PyObject* identity) const {
  auto found = tables_.find(identity);
  return found == tables_.end() ? nullptr : &found->second;
}

Heap::Table& Heap::table_of(const Target& target) {
  auto [found, added] = tables_.try_emplace(target.table);
  if (added) {
    found->second.target = target;
    table_order_.push_back(target.table);
  }
  found->second.paths.insert(target.owner);
  return found->second;
}

Heap::List* Heap::list(PyObject* object, const Source* path) {
  auto found = lists_.find(object);
  if (found == lists_.end()) return nullptr;
  found->second.paths.insert(path);
  return &found->second;
}

Heap::List& Heap::list_of(PyObject* object, const Source* source) {
  auto [found, added] = lists_.try_emplace(object);
  if (added) {
    found->second.object = Object::borrow(object);
    found->second.source = source;
    list_order_.push_back(object);
  }
  found->second.paths.insert(source);
  return found->second;
}

Held Heap::find(const Frames& frames, PyObject* identity, PyObject* key, const Source* path) {
  Table* state = table(identity);
  if (state == nullptr) return {};
  if (path != nullptr) state->paths.insert(path);
  for (auto change = state->changes.rbegin(); change != state->changes.rend(); ++change)
    if (change->key.get() == key || same_key(frames, change->key.get(), key)) return change->held;
  return state->cleared ? Held::absent() : Held();
}

bool Heap::cleared(PyObject* identity) const {
  const Table* state = table(identity);
  return state != nullptr && state->cleared;
}

void Heap::write(const Frames& frames, const Target& target, Change change) {
  Table& state = table_of(target);
  if (state.target.kind != target.kind &&
      state.target.kind == speculate::HeapWrite::Kind::attribute) {
    // An object's own dictionary: the write will be one of an attribute.
    PyTypeObject* type = Py_TYPE(state.target.object.get());
    if (!PyUnicode_CheckExact(change.key.get()) ||
        _PyType_Lookup(type, change.key.get()) != nullptr)
      frames.refuse(ReasonCode::heap_write, "an item of __dict__");
  }
  ++change_count_;
  if (state.shadow != nullptr)
    change_item(frames, *state.shadow, change.key, change.held.value_or_null());
  const auto earlier = last_change(frames, state.changes, change.key.get());
  const bool is_known = earlier != state.changes.end();
  // A key that is deleted and set again is the last one of its dict: both are kept. Of a set's
  // members only whether they are there.
  const bool was_deleted = is_known && earlier->held.is_absent();
  if (is_known && (earlier->held.is_value() == change.held.is_value() ||
                   target.kind == speculate::HeapWrite::Kind::member)) {
    earlier->held = std::move(change.held);
    return;
  }
  if (is_known && !was_deleted) {
    state.changes.erase(earlier);
    if (last_change(frames, state.changes, change.key.get()) != state.changes.end()) return;
  }
  state.changes.push_back(std::move(change));
}

void Heap::forget(PyObject* identity) {
  if (Table* changed = table(identity)) changed->changes.clear();
  ++change_count_;
}

void Heap::clear(const Target& target) {
  Table& state = table_of(target);
  ++change_count_;
  state.cleared = true;
  state.changes.clear();
  if (state.shadow != nullptr) state.shadow->items.clear();
}

}  // namespace janus::frontend
