#include "frontend/core/heap_places.h"

#include "base/mutation.h"
#include "frontend/core/keys.h"
#include "frontend/core/resolver.h"
#include "frontend/values/identity_number.h"
#include "python/context_variable.h"
#include "python/version.h"
#include "speculate/describe.h"
#include "speculate/finalizers.h"

namespace janus::frontend {

using python::Object;
using Kind = speculate::HeapWrite::Kind;

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

}  // namespace

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

const Source* HeapPlaces::source_or_constant(const Object& object, const Source* source) {
  if (source != nullptr) return source;
  return writer_.sources().root(Source::Kind::constant, object);
}

Heap::Target HeapPlaces::attributes_target(const Known& known) {
  Heap::Target target;
  PyObject* object = known.object.get();
  target.object = known.object;
  target.owner = source_or_constant(known.object, known.source);
  if (PyModule_CheckExact(object))
    target.table = PyModule_GetDict(object);
  else if (PyType_Check(object))
    target.table = python::class_dict(reinterpret_cast<PyTypeObject*>(object));
  else
    target.table = own_dictionary(object).get();  // the object keeps it alive
  return target;
}

Heap::Target HeapPlaces::dict_target(PyObject* dict, const Source* source) {
  Heap::Target target;
  target.table = dict;
  if (is_own_dictionary(source)) {
    target.owner = source->base;
    target.object = Object::borrow(Resolver(frames_)(source->base));
    return target;
  }
  target.kind = Kind::item;
  target.object = Object::borrow(dict);
  target.owner = source_or_constant(target.object, source);
  return target;
}

// --- what is stored ------------------------------------------------------------------------------

/// Whether the place still has the tensor that the entry was found to have there: `module.buffer +=
/// x` stores the very same object again.
bool HeapPlaces::is_there_already(const Heap::Target& target, const Object& key,
                                  const Source* at_entry, const Held& held) {
  const auto* tensor = held.is_value() ? as<Tensor>(held.value()) : nullptr;
  return tensor != nullptr && at_entry != nullptr && tensor->source == at_entry &&
         state_.heap.find(frames_, target.table, key.get(), target.owner).is_unknown();
}

/// What the commit replaces goes behind all that the run shows. Where its end is seen, the
/// statement stays in Python (Entry::finalizer_in_the_way finds those of later calls).
void HeapPlaces::check_replaced(const Heap::Target& target, const Object& key) {
  if (!state_.heap.find(frames_, target.table, key.get(), target.owner).is_unknown()) return;
  const Object replaced = object_in(target, key.get());
  constexpr Py_ssize_t kOurs = 4;  // the place, `replaced`, and what the interpreter has of it
  if (replaced && speculate::would_run_finalizer(replaced.get(), kOurs) &&
      !is_planted(State::finalizer, Mutation::not_written))
    frames_.refuse(ReasonCode::unknown_callable,
                   cat("the finalizer of ", speculate::describe_object(key.get())));
}

namespace {

/// The path that leads to a place now, and that by which the run wrote it last: it may have read it
/// by either.
std::vector<const Source*> paths_to(const Frames& frames, const Heap::Table* table,
                                    const Object& key, const Source* now) {
  std::vector<const Source*> paths;
  if (now != nullptr) paths.push_back(now);
  if (table == nullptr) return paths;
  for (const Heap::Change& change : table->changes)
    if (change.at_entry != nullptr && change.at_entry != now &&
        same_key(frames, change.key.get(), key.get()))
      paths.push_back(change.at_entry);
  return paths;
}

}  // namespace

void HeapPlaces::write_place(const Heap::Target& target, const Object& key, const Source* at_entry,
                             const Held& held) {
  if (is_there_already(target, key, at_entry, held)) return;
  // The key of a write is known when the graph is made. (A dict of the run can have such a key.)
  if (has_identity_number(key.get()))
    frames_.refuse(ReasonCode::dynamic_value,
                   "the id of an object as a key of what existed before");
  check_replaced(target, key);
  if (held.is_value())
    for (const Source* path : paths_to(frames_, state_.heap.table(target.table), key, at_entry))
      lifting_.note_written(path, held.value());
  state_.heap.write(frames_, target, {key, held, at_entry});
  frames_.mark(speculate::LineMark::Kind::effect);
}

// --- what they held at the entry ----------------------------------------------------------------

Held HeapPlaces::held_at_entry(const Heap::Table& table, const Heap::Change& change) {
  const Heap::Target& target = table.target;
  if (target.kind == Kind::member) {
    const Known set(target.object, target.owner);
    return held_at_entry(set, change.key) ? Held(maker_.none()) : Held::absent();
  }
  if (change.at_entry == nullptr) return {};
  const Object object = object_in(target, change.key.get());
  if (!object) return Held::absent();
  Value value = lifting_.wrap(object.get(), change.at_entry);
  if (change.held.is_value()) lifting_.note_written(change.at_entry, change.held.value());
  return value;
}

bool HeapPlaces::held_at_entry(const Known& set, const Object& element) {
  int found = PySet_Contains(set.object.get(), element.get());
  if (found < 0) frames_.refuse_raised();
  assumptions_.assume(found == 1 ? Assumption::Kind::has_key : Assumption::Kind::missing_key,
                      set.source, element);
  return found == 1;
}

}  // namespace janus::frontend
