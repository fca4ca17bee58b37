// Sets: methods and operators, of those that the run makes and of real ones.
#include <algorithm>
#include <map>

#include "frontend/objects/container_parts.h"
#include "frontend/objects/dict_views.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/class_of.h"
#include "frontend/core/keys.h"
#include "frontend/core/heap.h"
#include "frontend/core/operations.h"
#include "frontend/objects/special_callables.h"
#include "frontend/objects/containers.h"
#include "base/policy.h"

namespace janus::frontend {

using python::Object;
using syntax::CompareOperator;
using syntax::Operator;

namespace {

using Arguments = CallArguments;
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

void remove_from(Interpreter& interpreter, Keys& keys, const Value& key) {
  std::erase_if(keys, [&](const Value& each) { return is_same_element(interpreter, each, key); });
}

/// What a real set holds now: all of it is assumed.
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
      remove_from(interpreter, keys, key);
      if (change.held.is_value()) keys.push_back(key);
    }
  }
  return keys;
}

bool is_set(const Value& value) {
  if (as<SetValue>(value) != nullptr) return true;
  const auto* known = as<Known>(value);
  return known != nullptr && PyAnySet_CheckExact(known->object.get());
}

Keys keys_of(Interpreter& interpreter, const Value& value) {
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

std::shared_ptr<SetValue> make_set(Keys keys, bool is_frozen) {
  auto set = std::make_shared<SetValue>();
  set->elements = std::move(keys);
  set->is_frozen = is_frozen;
  set->only_grew = false;
  return set;
}

bool is_frozen(const Value& value) {
  if (const auto* set = as<SetValue>(value)) return set->is_frozen;
  const auto* known = as<Known>(value);
  return known != nullptr && PyFrozenSet_CheckExact(known->object.get());
}

Keys combined(Interpreter& interpreter, Operator op, const Keys& left, const Keys& right) {
  Keys keys;
  for (const Value& key : left) {
    const bool in_both = op != Operator::BitOr && holds(interpreter, right, key);
    if (op == Operator::BitOr || in_both == (op == Operator::BitAnd)) keys.push_back(key);
  }
  if (op != Operator::BitOr && op != Operator::BitXor) return keys;
  for (const Value& key : right)
    if (!holds(interpreter, left, key)) keys.push_back(key);
  return keys;
}

bool is_part(Interpreter& interpreter, const Keys& of, const Keys& keys) {
  return std::all_of(keys.begin(), keys.end(),
                     [&](const Value& key) { return holds(interpreter, of, key); });
}

/// set.add and set.discard of a real set do not look at what it holds.
void change_real(Interpreter& interpreter, const Known& known, const Object& key, bool adds) {
  Heap::Target target;
  target.table = known.object.get();
  target.kind = speculate::HeapWrite::Kind::member;
  target.owner = known.source;
  target.object = known.object;
  interpreter.write_place(target, key, nullptr, adds ? Held(interpreter.none()) : Held::absent());
}

void change(Interpreter& interpreter, const Value& self, const Value& key, bool adds) {
  if (const auto* known = as<Known>(self)) {
    if (known->source == nullptr || !PySet_CheckExact(known->object.get()))
      interpreter.refuse(ReasonCode::heap_write, "a set");
    return change_real(interpreter, *known, key_object(interpreter, key), adds);
  }
  auto& set = *as<SetValue>(self);
  if (set.is_frozen) interpreter.refuse(ReasonCode::would_raise, "AttributeError: a frozenset");
  if (adds) {
    if (!holds(interpreter, set.elements, key)) set.elements.push_back(key);
    return;
  }
  set.only_grew = false;
  remove_from(interpreter, set.elements, key);
}

/// Other operations than adding single elements give a set's table another form, and so its
/// elements another order: that must not show.
void expect_same_order(Interpreter& interpreter, const Value& self, Operator op, const Value& other,
                       const Keys& right) {
  if (auto* set = as<SetValue>(self)) {
    set->only_grew = set->only_grew && op == Operator::BitOr && !is_set(other);
    return;
  }
  if (right.empty() && op == Operator::BitOr) return;
  if (op != Operator::BitOr || is_set(other) || class_of(other) == &PyDict_Type)
    interpreter.refuse(ReasonCode::heap_write, "a set, by another");
}

/// `self op= other` for each of the others.
void change_by(Interpreter& interpreter, const Value& self, Operator op,
               const std::vector<Value>& others) {
  for (const Value& other : others) {
    const Keys right = keys_of(interpreter, other);
    expect_same_order(interpreter, self, op, other, right);
    if (op == Operator::BitOr || op == Operator::Sub) {
      for (const Value& key : right) change(interpreter, self, key, op == Operator::BitOr);
      continue;
    }
    const Keys before = keys_of(interpreter, self);
    const Keys after = combined(interpreter, op, before, right);
    for (const Value& key : before)
      if (!holds(interpreter, after, key)) change(interpreter, self, key, false);
    for (const Value& key : after)
      if (!holds(interpreter, before, key)) change(interpreter, self, key, true);
  }
}

struct NamedOperator {
  const char* name;
  Operator op;
};
constexpr NamedOperator results[] = {{"union", Operator::BitOr},
                                     {"intersection", Operator::BitAnd},
                                     {"difference", Operator::Sub},
                                     {"symmetric_difference", Operator::BitXor}};
constexpr NamedOperator changes[] = {{"update", Operator::BitOr},
                                     {"intersection_update", Operator::BitAnd},
                                     {"difference_update", Operator::Sub},
                                     {"symmetric_difference_update", Operator::BitXor}};

Value remove(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  expect_count(interpreter, arguments, 1, 1);
  if (!contains(interpreter, self, arguments.positional[0]))
    interpreter.refuse(ReasonCode::would_raise, "KeyError");
  change(interpreter, self, set_element(interpreter, arguments.positional[0]), false);
  return interpreter.none();
}

Value test_parts(Interpreter& interpreter, const Value& self, const std::string& name,
                 const Arguments& arguments) {
  expect_count(interpreter, arguments, 1, 1);
  const Keys left = keys_of(interpreter, self);
  const Keys right = keys_of(interpreter, arguments.positional[0]);
  if (name == "isdisjoint")
    return interpreter.boolean(combined(interpreter, Operator::BitAnd, left, right).empty());
  return interpreter.boolean(name == "issubset" ? is_part(interpreter, right, left)
                                                : is_part(interpreter, left, right));
}

Value any_set_method(const Value& self, const std::string& name) {
  auto native = [&](Native::Function function) {
    return std::make_shared<Native>("set." + name, std::move(function));
  };
  if (name == "add" || name == "discard")
    return native([self, name](Interpreter& inner, const Arguments& arguments) {
      expect_count(inner, arguments, 1, 1);
      change(inner, self, set_element(inner, arguments.positional[0]), name == "add");
      return inner.none();
    });
  if (name == "remove")
    return native([self](Interpreter& inner, const Arguments& arguments) {
      return remove(inner, self, arguments);
    });
  if (name == "issubset" || name == "issuperset" || name == "isdisjoint")
    return native([self, name](Interpreter& inner, const Arguments& arguments) {
      return test_parts(inner, self, name, arguments);
    });
  if (name == "copy")
    return native([self](Interpreter& inner, const Arguments& arguments) -> Value {
      expect_count(inner, arguments, 0, 0);
      return make_set(keys_of(inner, self), is_frozen(self));
    });
  for (const auto& [method, op] : changes)
    if (name == method)
      return native([self, op](Interpreter& inner, const Arguments& arguments) {
        change_by(inner, self, op, arguments.positional);
        return inner.none();
      });
  for (const auto& [method, op] : results)
    if (name == method)
      return native([self, op](Interpreter& inner, const Arguments& arguments) -> Value {
        Keys keys = keys_of(inner, self);
        for (const Value& other : arguments.positional)
          keys = combined(inner, op, keys, keys_of(inner, other));
        return make_set(std::move(keys), is_frozen(self));
      });
  return nullptr;
}

}  // namespace

Value set_element(Interpreter& interpreter, const Value& value) {
  return is_object(value) ? value : interpreter.constant(key_object(interpreter, value));
}

bool holds(Interpreter& interpreter, const Keys& elements, const Value& element) {
  return std::ranges::any_of(
      elements, [&](const Value& each) { return is_same_element(interpreter, each, element); });
}

/// Of a real set: what it held at the entry, and what the run has added and taken away since.
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

Value set_method(const std::shared_ptr<SetValue>& set, const std::string& name) {
  if (name == "clear")
    return std::make_shared<Native>("set.clear",
                                    [set](Interpreter& inner, const Arguments& arguments) {
                                      expect_count(inner, arguments, 0, 0);
                                      set->only_grew = false;
                                      set->elements.clear();
                                      return inner.none();
                                    });
  return any_set_method(set, name);
}

Value real_set_method(const Value& self, const std::string& name) {
  return any_set_method(self, name);
}

/// Python's order is that of a table which grew in the same way.
std::vector<Value> set_elements(Interpreter& interpreter, const SetValue& set) {
  if (!set.only_grew && set.elements.size() > 1)
    interpreter.refuse(ReasonCode::dynamic_value, "the order of a set's elements");
  if (set.elements.size() < 2) return set.elements;
  const Object twin = interpreter.must(PySet_New(nullptr));
  std::map<PyObject*, Value> values;
  for (const Value& element : set.elements) {
    const Object key = key_object(interpreter, element);
    values[key.get()] = element;
    if (PySet_Add(twin.get(), key.get()) < 0) interpreter.refuse_raised();
  }
  std::vector<Value> elements;
  for (const Object& element : python::elements(twin.get()))
    elements.push_back(values.at(element.get()));
  return elements;
}

Value set_binary(Interpreter& interpreter, Operator op, const Value& left, const Value& right) {
  const bool fits = op == Operator::BitOr || op == Operator::BitAnd || op == Operator::Sub ||
                    op == Operator::BitXor;
  // A view takes any iterable, and makes a set.
  const bool of_views = is_set_view(left) || is_set_view(right);
  if (!fits || (!of_views && (!is_set(left) || !is_set(right)))) return nullptr;
  return make_set(
      combined(interpreter, op, keys_of(interpreter, left), keys_of(interpreter, right)),
      !of_views && is_frozen(left));
}

Value set_binary_in_place(Interpreter& interpreter, Operator op, const Value& left,
                          const Value& right) {
  const bool fits = op == Operator::BitOr || op == Operator::BitAnd || op == Operator::Sub ||
                    op == Operator::BitXor;
  if (!fits || !is_set(left) || !is_set(right)) return nullptr;
  if (is_frozen(left)) return set_binary(interpreter, op, left, right);
  change_by(interpreter, left, op, {right});
  return left;
}

Value set_compare(Interpreter& interpreter, CompareOperator op, const Value& left,
                  const Value& right) {
  const auto is_compared = [](const Value& value) { return is_set(value) || is_set_view(value); };
  if (!is_compared(left) || !is_compared(right)) return nullptr;
  const Keys a = keys_of(interpreter, left), b = keys_of(interpreter, right);
  const bool within = is_part(interpreter, b, a), covers = is_part(interpreter, a, b);
  switch (op) {
    case CompareOperator::Eq:
      return interpreter.boolean(within && covers);
    case CompareOperator::NotEq:
      return interpreter.boolean(!within || !covers);
    case CompareOperator::LtE:
      return interpreter.boolean(within);
    case CompareOperator::Lt:
      return interpreter.boolean(within && !covers);
    case CompareOperator::GtE:
      return interpreter.boolean(covers);
    case CompareOperator::Gt:
      return interpreter.boolean(covers && !within);
    default:
      return nullptr;
  }
}

namespace {

Value call_set(Interpreter& interpreter, const Arguments& arguments, bool is_frozen) {
  expect_count(interpreter, arguments, 0, 1);
  auto set = std::make_shared<SetValue>();
  set->is_frozen = is_frozen;
  if (arguments.positional.empty()) return set;
  const Value& given = arguments.positional[0];
  if (is_frozen && janus::frontend::is_frozen(given)) return given;
  // Copies of sets and dicts are made with tables of another size.
  set->only_grew = !is_set(given) && class_of(given) != &PyDict_Type;
  set->elements = keys_of(interpreter, given);
  return set;
}

Value call_mutable_set(Interpreter& interpreter, const Arguments& arguments) {
  return call_set(interpreter, arguments, false);
}
Value call_frozen_set(Interpreter& interpreter, const Arguments& arguments) {
  return call_set(interpreter, arguments, true);
}

}  // namespace

std::span<const SpecialCallable> set_callables() {
  static constexpr SpecialCallable table[] = {{"builtins.set", call_mutable_set},
                                              {"builtins.frozenset", call_frozen_set}};
  return table;
}

}  // namespace janus::frontend
