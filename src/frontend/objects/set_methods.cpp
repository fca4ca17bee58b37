// Operations work on the elements of both sides; changes of a set that existed before the call go
// to the heap.
#include "frontend/objects/set_methods.h"

#include <algorithm>
#include <utility>

#include "frontend/core/class_of.h"
#include "frontend/core/heap.h"
#include "frontend/core/known_callables.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/dict_views.h"
#include "frontend/objects/folding.h"
#include "frontend/objects/iteration.h"
#include "frontend/objects/membership.h"
#include "frontend/objects/sets.h"
#include "frontend/objects/special_callables.h"
#include "frontend/values/operands.h"

namespace janus::frontend {

using python::Object;
using syntax::CompareOperator;
using syntax::Operator;

namespace {

using Arguments = CallArguments;
using Keys = std::vector<Value>;

std::shared_ptr<SetValue> make_set(Keys keys, bool is_frozen) {
  auto set = std::make_shared<SetValue>();
  set->elements = std::move(keys);
  set->is_frozen = is_frozen;
  set->only_grew = false;
  return set;
}

/// The elements of both. Of two that are equal, Python takes the one in the smaller set, or in what
/// is gone through because it is no set.
Keys intersection(Interpreter& interpreter, const Keys& left, const Keys& right, bool are_sets) {
  const bool from_left = are_sets && right.size() > left.size();
  Keys keys;
  for (const Value& key : from_left ? left : right)
    if (holds(interpreter, from_left ? right : left, key)) keys.push_back(key);
  return keys;
}

/// Those that a view and something else have in common: a view asks a set that is no smaller for
/// its intersection, and goes through all others itself.
Keys common_with_view(Interpreter& interpreter, const Keys& view, const Keys& others,
                      const Value& other) {
  const bool asks_set = is_set(other) && !is_frozen(other) && view.size() <= others.size();
  return asks_set ? intersection(interpreter, others, view, false)
                  : intersection(interpreter, view, others, false);
}

Keys combined(Interpreter& interpreter, Operator op, const Keys& left, const Keys& right,
              bool are_sets = true) {
  if (op == Operator::BitAnd) return intersection(interpreter, left, right, are_sets);
  Keys keys;
  for (const Value& key : left) {
    if (op == Operator::BitOr || !holds(interpreter, right, key)) keys.push_back(key);
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

/// set.add and set.discard of a set that existed before the call do not look at its elements.
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
  remove_element(interpreter, set.elements, key);
}

/// Refuses changes after which the order of elements is not known. Operations other than adding
/// single elements may rebuild the set's hash table.
void expect_same_order(const Frames& frames, const Value& self, Operator op, const Value& other,
                       const Keys& right) {
  // Python makes room for all keys of a dict and of a set before it adds the first.
  const bool grows = op == Operator::BitOr && !is_set(other) && class_of(other) != &PyDict_Type;
  if (auto* set = as<SetValue>(self)) {
    set->only_grew = set->only_grew && grows;
    return;
  }
  if (right.empty() && op == Operator::BitOr) return;
  if (!grows) frames.refuse(ReasonCode::heap_write, "a set that another set changes");
}

/// Whether code of the program may run while its elements are taken.
bool is_iterator(Interpreter& interpreter, const Value& value) {
  if (is_set(value) || is_constant(value)) return false;
  const Value shadow = opened(interpreter, value);
  return as<Iterator>(shadow) != nullptr || as<Instance>(shadow) != nullptr ||
         as<Known>(shadow) != nullptr;
}

/// Adds or discards each of the elements before the next is asked for, which may look.
void change_one_by_one(Interpreter& interpreter, const Value& self, Operator op,
                       const Value& other) {
  bool is_first = true;
  for_each_element(interpreter, other, [&](const Value& element) {
    const Value key = set_element(interpreter, element);
    if (std::exchange(is_first, false)) expect_same_order(interpreter, self, op, other, {key});
    change(interpreter, self, key, op == Operator::BitOr);
  });
}

/// `self op= other` for each of the others.
void change_by(Interpreter& interpreter, const Value& self, Operator op,
               const std::vector<Value>& others) {
  for (const Value& other : others) {
    const bool is_gone_through = op == Operator::BitOr || op == Operator::Sub;
    if (is_gone_through && is_iterator(interpreter, other)) {
      change_one_by_one(interpreter, self, op, other);
      continue;
    }
    const Keys right = unordered_elements(interpreter, other);
    expect_same_order(interpreter, self, op, other, right);
    if (is_gone_through) {
      for (const Value& key : right) change(interpreter, self, key, op == Operator::BitOr);
      continue;
    }
    const Keys before = unordered_elements(interpreter, self);
    const Keys after = combined(interpreter, op, before, right, is_set(other));
    if (auto* set = as<SetValue>(self); set != nullptr && !set->is_frozen) {
      set->elements = after;
      continue;
    }
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
  const Keys left = unordered_elements(interpreter, self);
  const Keys right = unordered_elements(interpreter, arguments.positional[0]);
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
      return make_set(unordered_elements(inner, self), is_frozen(self));
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
        Keys keys = unordered_elements(inner, self);
        for (const Value& other : arguments.positional)
          keys = combined(inner, op, keys, unordered_elements(inner, other), is_set(other));
        return make_set(std::move(keys), is_frozen(self));
      });
  return nullptr;
}

}  // namespace

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

Value set_binary(Interpreter& interpreter, Operator op, const Value& left, const Value& right) {
  const bool fits = op == Operator::BitOr || op == Operator::BitAnd || op == Operator::Sub ||
                    op == Operator::BitXor;
  // A view takes any iterable, and makes a set.
  const bool of_views = is_set_view(left) || is_set_view(right);
  if (!fits || (!of_views && (!is_set(left) || !is_set(right)))) return nullptr;
  const Keys first = unordered_elements(interpreter, left),
             second = unordered_elements(interpreter, right);
  if (op == Operator::BitAnd && of_views && is_set_view(left) != is_set_view(right)) {
    const bool is_first = is_set_view(left);
    return make_set(common_with_view(interpreter, is_first ? first : second,
                                     is_first ? second : first, is_first ? right : left),
                    false);
  }
  return make_set(combined(interpreter, op, first, second), !of_views && is_frozen(left));
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
  const Keys a = unordered_elements(interpreter, left), b = unordered_elements(interpreter, right);
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
  set->elements = unordered_elements(interpreter, given);
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
