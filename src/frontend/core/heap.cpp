#include "frontend/core/heap.h"

#include <algorithm>

#include "base/mutation.h"
#include "frontend/core/heap_parts.h"
#include "frontend/core/interpreter.h"
#include "python/context_variable.h"
#include "speculate/describe.h"
#include "speculate/finalizers.h"
#include "speculate/path.h"
#include "frontend/values/rolled_list.h"
#include "frontend/core/keys.h"

namespace janus::frontend {

using python::Object;
using speculate::HeapWrite;
using Kind = HeapWrite::Kind;

// --- state --------------------------------------------------------------------------------------

namespace {

/// The last change of the key, or the end.
std::vector<Heap::Change>::iterator last_change(Interpreter& interpreter,
                                                std::vector<Heap::Change>& changes, PyObject* key) {
  for (auto change = changes.end(); change != changes.begin();) {
    --change;
    if (same_key(interpreter, change->key.get(), key)) return change;
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

bool Heap::has_changed_list() const {
  return std::ranges::any_of(lists_, [](const auto& list) { return is_changed(list.second); });
}

bool Heap::has_opened(PyObject* list, const Heap& before) const {
  return list_at(list).twin != nullptr &&
         (!before.has_list(list) || before.list_at(list).twin == nullptr);
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

Held Heap::find(Interpreter& interpreter, PyObject* identity, PyObject* key, const Source* path) {
  Table* state = table(identity);
  if (state == nullptr) return {};
  if (path != nullptr) state->paths.insert(path);
  for (auto change = state->changes.rbegin(); change != state->changes.rend(); ++change)
    if (change->key.get() == key || same_key(interpreter, change->key.get(), key))
      return change->held;
  return state->cleared ? Held::absent() : Held();
}

bool Heap::cleared(PyObject* identity) const {
  const Table* state = table(identity);
  return state != nullptr && state->cleared;
}

void Heap::write(Interpreter& interpreter, const Target& target, Change change) {
  Table& state = table_of(target);
  if (state.target.kind != target.kind &&
      state.target.kind == speculate::HeapWrite::Kind::attribute) {
    // An object's own dictionary: the write will be one of an attribute.
    PyTypeObject* type = Py_TYPE(state.target.object.get());
    if (!PyUnicode_CheckExact(change.key.get()) ||
        _PyType_Lookup(type, change.key.get()) != nullptr)
      interpreter.refuse(ReasonCode::heap_write, "an item of __dict__");
  }
  ++change_count_;
  if (state.twin != nullptr)
    change_item(interpreter, *state.twin, change.key, change.held.value_or_null());
  const auto earlier = last_change(interpreter, state.changes, change.key.get());
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
    if (last_change(interpreter, state.changes, change.key.get()) != state.changes.end()) return;
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
  if (state.twin != nullptr) state.twin->items.clear();
}

// --- how tables are reached ---------------------------------------------------------------------

Object own_dictionary(PyObject* object) {
  PyObject** slot = _PyObject_GetDictPtr(object);
  if (slot != nullptr && *slot != nullptr) return Object::borrow(*slot);
  PyTypeObject* type = Py_TYPE(object);
  bool can_have = type->tp_dictoffset != 0;
#ifdef Py_TPFLAGS_MANAGED_DICT
  can_have = can_have || (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) != 0;
#endif
  if (!can_have) return {};
  Object made = Object::steal(PyObject_GenericGetDict(object, nullptr));
  PyErr_Clear();
  return made;
}

namespace {

const Source* source_or_constant(Interpreter& interpreter, const Object& object,
                                 const Source* source) {
  if (source != nullptr) return source;
  return interpreter.sources().root(Source::Kind::constant, object);
}

}  // namespace

Heap::Target attributes_target(Interpreter& interpreter, const Known& known) {
  Heap::Target target;
  PyObject* object = known.object.get();
  target.object = known.object;
  target.owner = source_or_constant(interpreter, known.object, known.source);
  if (PyModule_CheckExact(object))
    target.table = PyModule_GetDict(object);
  else if (PyType_Check(object))
    target.table = reinterpret_cast<PyTypeObject*>(object)->tp_dict;
  else
    target.table = own_dictionary(object).get();  // the object keeps it alive
  return target;
}

Heap::Target dict_target(Interpreter& interpreter, PyObject* dict, const Source* source) {
  Heap::Target target;
  target.table = dict;
  if (is_own_dictionary(source)) {
    target.owner = source->base;
    target.object = Object::borrow(Resolver(interpreter)(source->base));
    return target;
  }
  target.kind = Kind::item;
  target.object = Object::borrow(dict);
  target.owner = source_or_constant(interpreter, target.object, source);
  return target;
}

namespace {

/// What the key leads to in a real table; null if to nothing. Runs no code of the program.
Object object_in(const Heap::Target& target, PyObject* key) {
  PyObject* const place = target.table;
  Object object;
  if (PyCell_Check(place))
    object = Object::borrow(PyCell_GET(place));
  else if (PyContextVar_CheckExact(place))
    object = python::held_by_context_variable(place);
  else if (target.kind == Kind::attribute && target.object.is(place))  // a slot
    object = Object::steal(PyObject_GenericGetAttr(place, key));
  else if (PyDict_Check(place))
    object = Object::borrow(PyDict_GetItemWithError(place, key));
  PyErr_Clear();
  return object;
}

/// Whether the place still has the tensor that the entry was found to have there: `module.buffer +=
/// x` stores the very same object again.
bool is_there_already(Interpreter& interpreter, const Heap::Target& target, const Object& key,
                      const Source* at_entry, const Held& held) {
  const auto* tensor = held.is_value() ? as<Tensor>(held.value()) : nullptr;
  return tensor != nullptr && at_entry != nullptr && tensor->source == at_entry &&
         interpreter.heap.find(interpreter, target.table, key.get(), target.owner).is_unknown();
}

/// What the commit replaces goes behind all that the run shows. Where its end is seen, the
/// statement stays in Python (Entry::finalizer_in_the_way finds those of later calls).
void check_replaced(Interpreter& interpreter, const Heap::Target& target, const Object& key) {
  if (!interpreter.heap.find(interpreter, target.table, key.get(), target.owner).is_unknown())
    return;
  const Object replaced = object_in(target, key.get());
  constexpr Py_ssize_t kOurs = 4;  // the place, `replaced`, and what the interpreter has of it
  if (replaced && speculate::would_run_finalizer(replaced.get(), kOurs) &&
      !is_planted(State::finalizer, Mutation::not_written))
    interpreter.refuse(ReasonCode::unknown_callable,
                       cat("the finalizer of ", speculate::describe_object(key.get())));
}

}  // namespace

void write_place(Interpreter& interpreter, const Heap::Target& target, const Object& key,
                 const Source* at_entry, const Held& held) {
  if (is_there_already(interpreter, target, key, at_entry, held)) return;
  check_replaced(interpreter, target, key);
  if (at_entry != nullptr && held.is_value()) interpreter.note_written(at_entry, held.value());
  interpreter.heap.write(interpreter, target, {key, held, at_entry});
  interpreter.mark(speculate::LineMark::Kind::effect);
}

// --- branches -----------------------------------------------------------------------------------

Held held_at_entry(Interpreter& interpreter, const Heap::Table& table, const Heap::Change& change) {
  const Heap::Target& target = table.target;
  if (target.kind == Kind::member) {
    const Known set(target.object, target.owner);
    return held_at_entry(interpreter, set, change.key) ? Held(interpreter.none()) : Held::absent();
  }
  if (change.at_entry == nullptr) return {};
  const Object object = object_in(target, change.key.get());
  if (!object) return Held::absent();
  Value value = interpreter.wrap(object.get(), change.at_entry);
  if (change.held.is_value()) interpreter.note_written(change.at_entry, change.held.value());
  return value;
}

namespace {

/// What a mutation check takes the place for.
State state_of(const Heap::Target& target) {
  switch (target.kind) {
    case Kind::attribute:
      return target.object.is(target.table) ? State::slot : State::attribute;
    case Kind::item:
      return State::item;
    case Kind::member:
      return State::set;
    default:
      return State::variable;
  }
}

}  // namespace

class HeapMerger {
 public:
  using MergeValues = std::function<Value(const Value&, const Value&)>;
  HeapMerger(Interpreter& interpreter, const Heap& before, const Heap& first, const Heap& second,
             const MergeValues& merge_values)
      : interpreter_(interpreter),
        before_(before),
        first_(first),
        second_(second),
        merge_values_(merge_values) {}

  std::string run(Heap& merged) {
    for (const Heap* heap : {&first_, &second_}) {
      for (PyObject* identity : heap->table_order_)
        if (!merged.tables_.contains(identity)) merge_table(merged, identity);
      for (PyObject* object : heap->list_order_)
        if (!merged.lists_.contains(object)) merge_list(merged, object);
    }
    merged.change_count_ = std::max(first_.change_count_, second_.change_count_);
    return why_not_;
  }

 private:
  template <class Map>
  static auto* find(const Map& map, PyObject* object) {
    auto found = map.find(object);
    return found == map.end() ? nullptr : &found->second;
  }

  void fail(std::string why) {
    if (why_not_.empty()) why_not_ = std::move(why);
  }

  void merge_table(Heap& merged, PyObject* identity) {
    const Heap::Table* a = find(first_.tables_, identity);
    const Heap::Table* b = find(second_.tables_, identity);
    const Heap::Table* before = find(before_.tables_, identity);
    merged.table_order_.push_back(identity);
    Heap::Table& table = merged.tables_[identity] = a != nullptr ? *a : *b;
    // What only one side opened is opened again when it is needed.
    table.twin = before != nullptr ? before->twin : nullptr;
    table.changes.clear();
    static const Heap::Table untouched;
    const Heap::Table &left = a != nullptr ? *a : untouched, &right = b != nullptr ? *b : untouched;
    table.paths.insert(right.paths.begin(), right.paths.end());
    if (left.cleared != right.cleared) return fail("one side clears a container");
    if (same_keys(left.changes, right.changes)) {
      for (size_t i = 0; i < left.changes.size(); ++i)
        add_change(table, left.changes[i], left.changes[i].held, right.changes[i].held);
      return;
    }
    if (left.cleared) return fail("the sides write different keys");
    if (!same_order_of_new_keys(table, left.changes, right.changes) &&
        !is_planted(State::key_order, Mutation::both_sides))
      return fail("the sides make attributes or items in another order");
    for (const Heap::Change& change : left.changes)
      add_change(table, change, change.held, held_in(table, right.changes, change));
    for (const Heap::Change& change : right.changes)
      if (last(left.changes, change.key.get()) == nullptr)
        add_change(table, change, held_in(table, left.changes, change), change.held);
  }

  /// Whether keys that both sides write, and that may be new ones, come in one order: those that a
  /// side deletes and sets again as well. (A key that only one side writes is an old one, or the
  /// sides can't be merged.)
  bool same_order_of_new_keys(const Heap::Table& table, const std::vector<Heap::Change>& a,
                              const std::vector<Heap::Change>& b) {
    std::vector<Heap::Change> of_first, of_second;
    for (const Heap::Change& change : a)
      if (last(b, change.key.get()) != nullptr) of_first.push_back(change);
    for (const Heap::Change& change : b)
      if (last(a, change.key.get()) != nullptr) of_second.push_back(change);
    if (same_keys(of_first, of_second)) return true;
    const auto moves = [&](const std::vector<Heap::Change>& changes, PyObject* key) {
      return std::ranges::any_of(changes, [&](const Heap::Change& change) {
        return change.held.is_absent() && same_key(interpreter_, change.key.get(), key);
      });
    };
    const auto is_old = [&](const Heap::Change& change) {
      return !moves(a, change.key.get()) && !moves(b, change.key.get()) &&
             held_at_entry(interpreter_, table, change).is_value();
    };
    std::erase_if(of_first, is_old);
    std::erase_if(of_second, is_old);
    return same_keys(of_first, of_second);
  }

  bool same_keys(const std::vector<Heap::Change>& a, const std::vector<Heap::Change>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const auto& x, const auto& y) {
      return same_key(interpreter_, x.key.get(), y.key.get()) &&
             x.held.is_absent() == y.held.is_absent();
    });
  }

  const Heap::Change* last(const std::vector<Heap::Change>& changes, PyObject* key) {
    for (size_t i = changes.size(); i-- > 0;)
      if (same_key(interpreter_, changes[i].key.get(), key)) return &changes[i];
    return nullptr;
  }

  void add_change(Heap::Table& table, const Heap::Change& change, const Held& a, const Held& b) {
    if (!why_not_.empty()) return;
    Held merged = a;
    if (a.is_value() && b.is_value())
      merged = merge_values_(a.value(), b.value());
    else if (!a.is_absent() || !b.is_absent())
      return fail("only one side deletes or makes an attribute or item");
    table.changes.push_back({change.key, merged, change.at_entry});
  }

  /// What a side leaves in a place that the other one writes: what was there at the entry.
  Held held_in(const Heap::Table& table, const std::vector<Heap::Change>& changes,
               const Heap::Change& wanted) {
    if (const Heap::Change* change = last(changes, wanted.key.get())) return change->held;
    const bool is_known = !wanted.held.is_value() || as<Known>(wanted.held.value()) != nullptr;
    if (is_known && is_planted(state_of(table.target), Mutation::both_sides)) return wanted.held;
    const Held held = held_at_entry(interpreter_, table, wanted);
    // Nothing is assumed of what is not there, but of sets.
    return held.is_absent() && table.target.kind != Kind::member ? Held() : held;
  }

  /// What the list has behind its elements of the entry; null if these were changed.
  static std::shared_ptr<Sequence> grown(const Heap::List* list) {
    if (list == nullptr) return std::make_shared<Sequence>(true);
    if (list->twin == nullptr) return list->appended;
    if (list->twin->elements == list->at_entry) return std::make_shared<Sequence>(true);
    const std::vector<Value>& now = list->twin->elements;
    bool kept = now.size() >= list->at_entry.size() &&
                std::equal(list->at_entry.begin(), list->at_entry.end(), now.begin());
    if (!kept) return nullptr;
    auto behind = std::make_shared<Sequence>(true);
    behind->elements = std::vector<Value>(
        now.begin() + static_cast<std::ptrdiff_t>(list->at_entry.size()), now.end());
    return behind;
  }

  void merge_list(Heap& merged, PyObject* object) {
    const Heap::List* a = find(first_.lists_, object);
    const Heap::List* b = find(second_.lists_, object);
    const Heap::List* before = find(before_.lists_, object);
    merged.list_order_.push_back(object);
    Heap::List& list = merged.lists_[object] = a != nullptr ? *a : *b;
    if (b != nullptr) list.paths.insert(b->paths.begin(), b->paths.end());
    if (before != nullptr && before->twin != nullptr) return;  // merged as any other list
    auto first = grown(a), second = grown(b);
    if (is_planted(State::list, Mutation::both_sides))
      (b == nullptr ? second : first) = b == nullptr ? first : second;
    if (!first || !second) return fail("the sides leave a list with different elements");
    list.twin = nullptr;
    list.appended = std::static_pointer_cast<Sequence>(merge_values_(first, second));
  }

  Interpreter& interpreter_;
  const Heap &before_, &first_, &second_;
  const MergeValues& merge_values_;
  std::string why_not_;
};

std::string Heap::merge(Interpreter& interpreter, const Heap& before, const Heap& first,
                        const Heap& second, const HeapMerger::MergeValues& merge_values) {
  Heap merged;
  std::string why_not = HeapMerger(interpreter, before, first, second, merge_values).run(merged);
  if (why_not.empty()) *this = std::move(merged);
  return why_not;
}

// --- the end of the run -------------------------------------------------------------------------

namespace {

/// How many of the list's first elements are those of the entry.
size_t unchanged_elements(const Heap::List& list) {
  size_t count = 0;
  while (count < list.at_entry.size() && count < list.twin->elements.size() &&
         list.at_entry[count] == list.twin->elements[count])
    ++count;
  return count;
}

/// How many elements of a deque have gone at the left, where the others are still there.
size_t dropped_elements(const Heap::List& list) {
  const std::vector<Value>&before = list.at_entry, &now = list.twin->elements;
  for (size_t dropped = 0; dropped < before.size(); ++dropped) {
    const size_t kept = before.size() - dropped;
    if (kept <= now.size() &&
        std::equal(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(kept),
                   before.begin() + static_cast<std::ptrdiff_t>(dropped)))
      return dropped;
  }
  return before.size();
}

/// Elements behind the unchanged ones.
std::vector<Value> new_elements(const Heap::List& list) {
  if (list.twin == nullptr) return list.appended->elements;
  const std::vector<Value>& elements = list.twin->elements;
  if (!PyList_Check(list.object.get())) {
    const size_t kept = list.at_entry.size() - dropped_elements(list);
    return {elements.begin() + static_cast<std::ptrdiff_t>(kept), elements.end()};
  }
  return {elements.begin() + static_cast<std::ptrdiff_t>(unchanged_elements(list)), elements.end()};
}

HeapWrite write_of(const Heap::Table& table) {
  HeapWrite write;
  write.kind = table.target.kind;
  write.owner = table.target.owner;
  write.index = table.target.index;
  return write;
}

}  // namespace

std::vector<Value> values_written(Interpreter& interpreter) {
  std::vector<Value> values;
  Heap& heap = interpreter.heap;
  for (PyObject* identity : heap.table_order())
    for (const Heap::Change& change : heap.table(identity)->changes)
      if (change.held.is_value()) values.push_back(change.held.value());
  for (PyObject* object : heap.list_order()) {
    const Heap::List& list = heap.list_at(object);
    if (!is_changed(list)) continue;
    if (list.twin == nullptr && rolled(list.appended) != nullptr) {
      values.push_back(list.appended);
      continue;
    }
    for (const Value& element : new_elements(list)) values.push_back(element);
  }
  return values;
}

void commit_heap(Interpreter& interpreter,
                 const std::function<speculate::Template(const Value&)>& form) {
  Heap& heap = interpreter.heap;
  std::vector<HeapWrite>& writes = interpreter.output().writes;
  for (PyObject* identity : heap.table_order()) {
    const Heap::Table& table = *heap.table(identity);
    if (table.cleared) {
      writes.push_back(write_of(table));
      writes.back().kind = Kind::clear;
    }
    for (const Heap::Change& change : table.changes) {
      HeapWrite write = write_of(table);
      write.key = change.key;
      write.deletes = change.held.is_absent();
      if (!write.deletes && write.kind != Kind::member) write.value = form(change.held.value());
      writes.push_back(std::move(write));
    }
  }
  for (PyObject* object : heap.list_order()) {
    const Heap::List& list = heap.list_at(object);
    if (!is_changed(list)) continue;
    HeapWrite write;
    write.kind = PyList_Check(object) ? Kind::tail : Kind::extend;
    write.owner = list.source;
    if (write.kind == Kind::tail)
      write.index = list.twin == nullptr ? HeapWrite::kEnd : unchanged_elements(list);
    else
      write.index = list.twin == nullptr ? 0 : dropped_elements(list);
    if (list.twin == nullptr && rolled(list.appended) != nullptr) {
      write.value = form(list.appended);
      writes.push_back(std::move(write));
      continue;
    }
    write.value.kind = speculate::Template::Kind::list;
    for (const Value& element : new_elements(list)) write.value.children.push_back(form(element));
    writes.push_back(std::move(write));
  }
}

bool held_at_entry(Interpreter& interpreter, const Known& set, const Object& element) {
  int found = PySet_Contains(set.object.get(), element.get());
  if (found < 0) interpreter.refuse_raised();
  interpreter.assume(found == 1 ? Assumption::Kind::has_key : Assumption::Kind::missing_key,
                     set.source, element);
  return found == 1;
}

}  // namespace janus::frontend
