// Elements are compared as a set does: constants by their hash and equality, objects by identity.
#include "frontend/objects/sets.h"

#include <algorithm>
#include <map>

#include "base/policy.h"
#include "frontend/core/class_entry.h"
#include "frontend/core/class_of.h"
#include "frontend/core/heap.h"
#include "frontend/core/keys.h"
#include "frontend/core/operations.h"
#include "frontend/objects/folding.h"

namespace janus::frontend {

using python::Object;

namespace {

using Keys = std::vector<Value>;

/// Whether the value is an object that the run makes and that is equal to nothing but itself.
bool is_made_object(const Value& value) {
  if (const auto* tensor = as<Tensor>(value))
    return tensor->source == nullptr && !tensor->is_borrowed && tensor->list_memory == nullptr;
  const auto* instance = as<Instance>(value);
  return instance != nullptr && class_of(value)->tp_hash == PyBaseObject_Type.tp_hash &&
         class_of(value)->tp_richcompare == PyBaseObject_Type.tp_richcompare;
}

bool is_object(const Value& element) {
  return is_made_object(element) || entry_object_of(element).object != nullptr;
}

bool is_same_element(Interpreter& interpreter, const Value& a, const Value& b) {
  if (a == b) return true;
  if (is_object(a) && is_object(b)) return identical(interpreter, a, b);
  if (is_object(a) == is_object(b)) return same_key(interpreter, known_object(a), known_object(b));
  // A constant, or what a real set holds, is of another class than an object, or one that is known.
  const Value &object = is_object(a) ? a : b, &constant = is_object(a) ? b : a;
  if (class_of(object) != class_of(constant)) return false;
  return same_key(interpreter, key_object(interpreter, object).get(), known_object(constant));
}

/// The elements of a set that existed before the call, with guards on all of them.
Keys keys_of_real(Interpreter& interpreter, const Known& known) {
  PyObject* set = known.object.get();
  if (PySet_GET_SIZE(set) > policy::kMostSetElements)
    interpreter.refuse(ReasonCode::limit, "a set of many elements");
  Keys keys;
  interpreter.assume(Assumption::Kind::length, known.source, {}, PySet_GET_SIZE(set));
  for (const Object& element : python::elements(set)) {
    // Looking for an object of a user's class would run its code.
    const Value key = interpreter.constant(element);
    key_object(interpreter, key);
    keys.push_back(key);
    if (known.source != nullptr) interpreter.held_at_entry(known, element);
  }
  if (const Heap::Table* table = interpreter.heap.table(set)) {
    for (const Heap::Change& change : table->changes) {
      const Value key = interpreter.constant(change.key);
      remove_element(interpreter, keys, key);
      if (change.held.is_value()) keys.push_back(key);
    }
  }
  return keys;
}

}  // namespace

Value set_element(Interpreter& interpreter, const Value& value) {
  if (!is_object(value)) return interpreter.constant(key_object(interpreter, value));
  if (as<Tensor>(value) == nullptr)
    assume_entries(interpreter, class_of(value), {"__eq__", "__hash__"});
  return value;
}

bool holds(Interpreter& interpreter, const Keys& elements, const Value& element) {
  return std::ranges::any_of(
      elements, [&](const Value& each) { return is_same_element(interpreter, each, element); });
}

bool is_set(const Value& value) {
  if (as<SetValue>(value) != nullptr) return true;
  const auto* known = as<Known>(value);
  return known != nullptr && PyAnySet_CheckExact(known->object.get());
}

bool is_frozen(const Value& value) {
  if (const auto* set = as<SetValue>(value)) return set->is_frozen;
  const auto* known = as<Known>(value);
  return known != nullptr && PyFrozenSet_CheckExact(known->object.get());
}

Keys unordered_elements(Interpreter& interpreter, const Value& value) {
  if (const auto* set = as<SetValue>(value)) return set->elements;
  if (const auto* known = as<Known>(value);
      known != nullptr && PyAnySet_CheckExact(known->object.get()))
    return keys_of_real(interpreter, *known);
  Keys keys;
  for (const Value& element : elements_of(interpreter, value)) {
    Value key = set_element(interpreter, element);
    if (!holds(interpreter, keys, key)) keys.push_back(std::move(key));
  }
  return keys;
}

/// CPython's order follows from how the hash table grew: a set is built in the same way here.
std::vector<Value> set_elements(Interpreter& interpreter, const SetValue& set) {
  if (!set.only_grew && set.elements.size() > 1)
    interpreter.refuse(ReasonCode::dynamic_value, "the order of a set's elements");
  if (set.elements.size() < 2) return set.elements;
  const Object copy = interpreter.must(PySet_New(nullptr));
  std::map<PyObject*, Value> values;
  for (const Value& element : set.elements) {
    const Object key = key_object(interpreter, element);
    values[key.get()] = element;
    if (PySet_Add(copy.get(), key.get()) < 0) interpreter.refuse_raised();
  }
  std::vector<Value> elements;
  for (const Object& element : python::elements(copy.get()))
    elements.push_back(values.at(element.get()));
  return elements;
}

/// The length at the entry, and what the run has added and removed since.
int64_t set_length(Interpreter& interpreter, const Known& known) {
  PyObject* set = known.object.get();
  auto length = static_cast<int64_t>(PySet_GET_SIZE(set));
  interpreter.assume(Assumption::Kind::length, known.source, {}, length);
  const Heap::Table* table = interpreter.heap.table(set);
  if (table == nullptr) return length;
  for (const Heap::Change& change : table->changes)
    length +=
        (change.held.is_value() ? 1 : 0) - (interpreter.held_at_entry(known, change.key) ? 1 : 0);
  return length;
}

void remove_element(Interpreter& interpreter, Keys& keys, const Value& key) {
  std::erase_if(keys, [&](const Value& each) { return is_same_element(interpreter, each, key); });
}

}  // namespace janus::frontend
