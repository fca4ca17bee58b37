// Comparisons of constants are computed now; of numbers and tensors they are operators of the
// graph; containers are compared element by element.
#include "frontend/language/comparison.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "frontend/control/optional.h"
#include "frontend/control/run_time_items.h"
#include "frontend/core/class_entry.h"
#include "frontend/core/class_of.h"
#include "frontend/core/flags.h"
#include "frontend/core/keys.h"
#include "frontend/core/narrowing.h"
#include "frontend/core/nesting.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/language/numbers.h"
#include "frontend/objects/dict_views.h"
#include "frontend/objects/instances.h"
#include "frontend/objects/membership.h"
#include "frontend/objects/set_methods.h"
#include "frontend/tensors/callables.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/constants.h"
#include "frontend/values/formula.h"
#include "frontend/values/identity_number.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/operands.h"
#include "ops/list.h"
#include "python/integer.h"

namespace janus::frontend {

using graph::Dim;
using graph::Type;
using python::Object;
using syntax::CompareOperator;

namespace {

int python_comparison(CompareOperator op) {
  switch (op) {
    case CompareOperator::Eq:
      return Py_EQ;
    case CompareOperator::NotEq:
      return Py_NE;
    case CompareOperator::Lt:
      return Py_LT;
    case CompareOperator::LtE:
      return Py_LE;
    case CompareOperator::Gt:
      return Py_GT;
    case CompareOperator::GtE:
      return Py_GE;
    default:
      return -1;
  }
}

/// The comparison as a value of the graph.
Value number_test(Interpreter& interpreter, CompareOperator op, const Value& left,
                  const Value& right, const Object& example) {
  static constexpr const graph::OpDef* operators[] = {&op::scalar_lt, &op::scalar_le,
                                                      &op::scalar_eq, &op::scalar_ne,
                                                      &op::scalar_gt, &op::scalar_ge};
  graph::Value* value = (*operators[python_comparison(op)])(
      interpreter.builder(), {interpreter.graph_value(left), interpreter.graph_value(right)});
  return interpreter.number(value, example);
}

/// The difference; nothing if a part of it does not fit into 64 bits.
std::optional<Dim> subtracted(const Dim& a, const Dim& b) {
  try {
    return a - b;
  } catch (const graph::DimError&) {
    return std::nullopt;
  }
}

Value number_compare(Interpreter& interpreter, CompareOperator op, const Value& left,
                     const Value& right) {
  int how = python_comparison(op);
  Object example, left_example = example_of(left), right_example = example_of(right);
  if (left_example && right_example)
    example = interpreter.must(PyObject_RichCompare(left_example.get(), right_example.get(), how));
  std::optional<Dim> a = dim_of(left), b = dim_of(right);
  if (a && b) {
    // What holds for all values of the symbols needs no guard.
    const auto decided = [&](int64_t difference) {
      const Object zero = python::integer(0), sign = python::integer(difference);
      return interpreter.constant(Object::steal(PyObject_RichCompare(sign.get(), zero.get(), how)));
    };
    const std::optional<Dim> difference = subtracted(*a, *b), opposite = subtracted(*b, *a);
    if (!difference || !opposite) return number_test(interpreter, op, left, right, example);
    if (difference->is_constant()) return decided(difference->value());
    if (difference->lower_bound().value_or(0) > 0) return decided(1);
    if (opposite->lower_bound().value_or(0) > 0) return decided(-1);
    const bool asks_equality = op == CompareOperator::Eq || op == CompareOperator::NotEq;
    const bool are_equal = op == CompareOperator::Eq;
    if (asks_equality && example.is(are_equal ? Py_True : Py_False)) {
      interpreter.expect_one_name(*a, *b);
      interpreter.assume_equal(*a, *b);
      return interpreter.boolean(are_equal);
    }
  }
  return number_test(interpreter, op, left, right, example);
}

Value tensor_compare(Interpreter& interpreter, CompareOperator op, const Value& left,
                     const Value& right) {
  static constexpr const char* names[] = {"Tensor.lt", "Tensor.le", "Tensor.eq",
                                          "Tensor.ne", "Tensor.gt", "Tensor.ge"};
  static constexpr int swapped[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};
  int how = python_comparison(op);
  bool fits = (as<Tensor>(left) != nullptr || is_number(left)) &&
              (as<Tensor>(right) != nullptr || is_number(right));
  if (!fits) {
    // A tensor equals no object of another kind.
    if (how == Py_EQ || how == Py_NE) return interpreter.boolean(how == Py_NE);
    interpreter.refuse(ReasonCode::would_raise, "TypeError: comparison with a tensor");
  }
  if (as<Tensor>(left) == nullptr)
    return call_named(interpreter, names[swapped[how]],
                      {.positional = {right, left}, .keywords = {}});
  return call_named(interpreter, names[how], {.positional = {left, right}, .keywords = {}});
}

/// Whether the run decides if the two are one object: by a branch, a loop or a list.
bool may_be_one(const Tensor& a, const Tensor& b) {
  const auto leads_to = [](const Tensor& from, const Tensor& to) {
    return std::any_of(
        from.possible_aliases.begin(), from.possible_aliases.end(),
        [&](const PossibleAlias& alias) {
          auto other = alias.tensor.lock();
          if (other == nullptr) return false;
          return other.get() == &to ||
                 std::any_of(to.possible_aliases.begin(), to.possible_aliases.end(),
                             [&](const PossibleAlias& its) { return its.tensor.lock() == other; });
        });
  };
  return leads_to(a, b) || leads_to(b, a);
}

/// Whether CPython keeps a single object for all ints of that value.
bool is_small_int(PyObject* object) {
  if (!PyLong_CheckExact(object)) return false;
  const std::optional<int64_t> number = python::int64_of(object);
  return number && *number >= -5 && *number <= 256;
}

/// `left is right` or `left is not right` where the graph computes one of the numbers and equal
/// numbers are one object: bools and small ints. Null for others.
Value number_identity(Interpreter& interpreter, CompareOperator op, const Value& left,
                      const Value& right) {
  const auto kind = kind_of_number(left);
  if (!kind || kind != kind_of_number(right) || left == right) return nullptr;
  if (as<Number>(left) == nullptr && as<Number>(right) == nullptr) return nullptr;
  const auto is_small = [](const Value& value) {
    return as<Known>(value) != nullptr && is_small_int(known_object(value));
  };
  if (*kind != Type::Kind::boolean && !is_small(left) && !is_small(right)) return nullptr;
  return compare(interpreter,
                 op == CompareOperator::Is ? CompareOperator::Eq : CompareOperator::NotEq, left,
                 right);
}

}  // namespace

bool are_identical(Interpreter& interpreter, const Value& left, const Value& right) {
  if (left == right) return true;
  expect_narrowed(left);
  expect_narrowed(right);
  if (may_be_one_view(left, right))
    interpreter.refuse(ReasonCode::expression, "whether two views are one object");
  const EntryObject one = entry_object_of(left), other = entry_object_of(right);
  if (const auto *first = as<Tensor>(left), *second = as<Tensor>(right);
      first != nullptr && second != nullptr) {
    if (may_be_one(*first, *second))
      interpreter.refuse(ReasonCode::expression, "the identity of a tensor that may be another");
    if (one.object != nullptr && other.object != nullptr)
      return interpreter.identities.are_one(interpreter, one, other);
  }
  const auto* a = as<Known>(left);
  const auto* b = as<Known>(right);
  if (a != nullptr && b != nullptr && a->source != nullptr && a->source == b->source) return true;
  if (a != nullptr && b != nullptr) {
    bool same = a->object.is(b->object.get());
    // Whether equal numbers and strings are one object is an accident of the interpreter.
    auto singleton = [](PyObject* object) {
      return object == Py_None || object == Py_True || object == Py_False ||
             object == Py_Ellipsis || object == Py_NotImplemented;
    };
    if (singleton(a->object.get()) || singleton(b->object.get())) return same;
    if (is_immutable_constant(a->object.get()) && is_immutable_constant(b->object.get())) {
      if (same && a->source == b->source) return true;
      if (!same_constant(a->object.get(), b->object.get())) return false;
      if (is_small_int(a->object.get())) return true;
      interpreter.refuse(ReasonCode::expression, "the identity of equal constants");
    }
    if (one.object != nullptr && other.object != nullptr)
      return interpreter.identities.are_one(interpreter, one, other);
    interpreter.assume_identity(*a);
    interpreter.assume_identity(*b);
    return same;
  }
  // A known object is none that the run makes. A number may be any object of its class.
  if (as<Number>(left) != nullptr || as<Number>(right) != nullptr) {
    const PyTypeObject *one = class_of(left), *other = class_of(right);
    if (one != nullptr && other != nullptr && one != other) return false;
    interpreter.refuse(ReasonCode::expression, "the identity of a number");
  }
  // A pre-existing container and its shadow copy are one object.
  auto source_of = [](const Value& value) -> const Source* {
    if (const auto* sequence = as<Sequence>(value)) return sequence->source;
    if (const auto* dictionary = as<Dictionary>(value)) return dictionary->source;
    if (const auto* known = as<Known>(value)) return known->source;
    return nullptr;
  };
  if (source_of(left) != nullptr && source_of(left) == source_of(right)) return true;
  for (const Value& side : {left, right})
    if (const auto* tensor = as<Tensor>(side); tensor != nullptr && tensor->is_borrowed)
      interpreter.refuse(ReasonCode::expression, "the identity of a tensor met at run time");
  return false;
}

namespace {

bool is_known_nan(const Value& value) {
  PyObject* const object = known_object(value);
  return object != nullptr && PyFloat_Check(object) && std::isnan(PyFloat_AS_DOUBLE(object));
}

/// Whether two elements are equal: a flag that may vary for numbers only.
Value equal_elements(Interpreter& interpreter, const Value& left, const Value& right) {
  const Nesting deeper(interpreter);
  if (left == right) return interpreter.boolean(true);
  // NaN equals itself if it is the same object.
  const auto *first = as<Number>(left), *second = as<Number>(right);
  if (first != nullptr && second != nullptr && first->source != nullptr &&
      first->type == Type::Kind::f64 && second->type == Type::Kind::f64) {
    if (first->source == second->source) return interpreter.boolean(true);
    if (second->source != nullptr)
      interpreter.refuse(ReasonCode::dynamic_value, "whether two floats are one object");
  }
  if (is_known_nan(left) && is_known_nan(right))
    interpreter.refuse(ReasonCode::dynamic_value, "whether two floats are one object");
  Value same = compare(interpreter, CompareOperator::Eq, left, right);
  return is_flag(same) ? same : interpreter.boolean(truth(interpreter, same, -1));
}

/// The order of two sequences is that of the first elements that differ, or of their lengths.
Value sequence_order(Interpreter& interpreter, CompareOperator op, const Sequence& left,
                     const Sequence& right) {
  const auto comparable = [&](const Value& element) {
    if (is_number(element) || is_string(element)) return true;
    const Value part = opened(interpreter, element);
    const auto* sequence = as<Sequence>(part);
    return sequence != nullptr && !sequence->is_list;
  };
  const auto &first = left.elements, &second = right.elements;
  const size_t count = std::min(first.size(), second.size());
  Value result = compare(interpreter, op, interpreter.integer(static_cast<int64_t>(first.size())),
                         interpreter.integer(static_cast<int64_t>(second.size())));
  for (size_t i = count; i-- > 0;) {
    if (!comparable(first[i]) || !comparable(second[i]))
      interpreter.refuse(ReasonCode::expression, "the order of containers");
    const Value same = equal_elements(interpreter, first[i], second[i]);
    const Value differ = flag_value(interpreter, negated(interpreter, truth_of(interpreter, same)));
    result = either_flag(
        interpreter, both_flags(interpreter, differ, compare(interpreter, op, first[i], second[i])),
        both_flags(interpreter, same, result));
  }
  return result;
}

Value sequence_compare(Interpreter& interpreter, CompareOperator op, const Sequence& left,
                       const Sequence& right) {
  const bool rolls = left.elements.rolled() != nullptr || right.elements.rolled() != nullptr;
  const bool typed_lists = left.is_list && left.type.get() != right.type.get();
  if (op != CompareOperator::Eq && op != CompareOperator::NotEq) {
    if (left.is_list != right.is_list || typed_lists || rolls)
      interpreter.refuse(ReasonCode::expression, "the order of containers");
    return sequence_order(interpreter, op, left, right);
  }
  Value equal = interpreter.boolean(left.is_list == right.is_list && !typed_lists &&
                                    left.elements.size() == right.elements.size());
  for (size_t i = 0; known_object(equal) != Py_False && i < left.elements.size(); ++i)
    equal = both_flags(interpreter, equal,
                       equal_elements(interpreter, left.elements[i], right.elements[i]));
  if (op == CompareOperator::Eq) return equal;
  return flag_value(interpreter, negated(interpreter, truth_of(interpreter, equal)));
}

/// Whether two dicts have the same keys with equal values, in any order.
Value dict_equality(Interpreter& interpreter, CompareOperator op, const Dictionary& left,
                    const Dictionary& right) {
  Value equal = interpreter.boolean(left.items.size() == right.items.size());
  for (const auto& [key, value] : left.items) {
    if (known_object(equal) == Py_False) break;
    const auto other = std::ranges::find_if(right.items, [&](const auto& item) {
      return same_key(interpreter, item.first.get(), key.get());
    });
    equal = other == right.items.end()
                ? interpreter.boolean(false)
                : both_flags(interpreter, equal, equal_elements(interpreter, value, other->second));
  }
  if (op == CompareOperator::Eq) return equal;
  return flag_value(interpreter, negated(interpreter, truth_of(interpreter, equal)));
}

/// Numbers that id() gave and only the run knows. Null: neither is one.
Value compare_identity_numbers(Interpreter& interpreter, CompareOperator op, const Value& left,
                               const Value& right) {
  PyObject *const first = known_object(left), *const second = known_object(right);
  if (!is_identity_number(first) && !is_identity_number(second)) return nullptr;
  const bool is_equality = op == CompareOperator::Eq || op == CompareOperator::NotEq;
  if (!is_equality || as<Number>(left) != nullptr || as<Number>(right) != nullptr)
    interpreter.refuse(ReasonCode::expression, "id()");
  const bool same = first != nullptr && second != nullptr && same_key(interpreter, first, second);
  return interpreter.boolean(same == (op == CompareOperator::Eq));
}

Value object_compare(Interpreter& interpreter, CompareOperator op, const Known& left,
                     const Known& right, const Value& left_value, const Value& right_value) {
  PyObject* a = left.object.get();
  PyObject* b = right.object.get();
  // Objects whose class compares by identity, or whose comparison only computes.
  auto plain = [](PyObject* object) {
    return is_immutable_constant(object) || is_torch_constant(object) ||
           Py_TYPE(object)->tp_richcompare == PyBaseObject_Type.tp_richcompare ||
           PyType_Check(object);
  };
  const bool are_plain = plain(a) && plain(b);
  // Ranges are equal if their numbers are, functions of C if they and their objects are the same.
  const bool are_values =
      (PyRange_Check(a) && PyRange_Check(b)) || (PyCFunction_Check(a) && PyCFunction_Check(b));
  const EntryObject one = entry_object_of(left_value), other = entry_object_of(right_value);
  const bool is_equality = op == CompareOperator::Eq || op == CompareOperator::NotEq;
  if (are_plain)
    for (PyObject* object : {a, b})
      assume_entries(interpreter, Py_TYPE(object), {"__eq__", comparison_method(op)});
  if (are_plain && is_equality && one.object != nullptr && other.object != nullptr)
    return interpreter.boolean(interpreter.identities.are_one(interpreter, one, other) ==
                               (op == CompareOperator::Eq));
  if (are_plain || are_values) {
    interpreter.assume_identity(left);
    interpreter.assume_identity(right);
    return interpreter.constant(
        interpreter.must(PyObject_RichCompare(a, b, python_comparison(op))));
  }
  return compare_instances(interpreter, op, left_value, right_value);
}

/// A bound method's object and function; none of what is no bound method.
std::optional<std::pair<Value, Value>> bound_parts(Interpreter& interpreter, const Value& value) {
  if (const auto* method = as<Method>(value)) return std::pair(method->self, method->function);
  PyObject* const object = known_object(value);
  if (object == nullptr || !PyMethod_Check(object)) return std::nullopt;
  const Source* source = as<Known>(value)->source;
  const auto part = [&](PyObject* of, Source::Kind kind) {
    return interpreter.wrap(of,
                            source == nullptr ? nullptr : interpreter.sources().step(kind, source));
  };
  return std::pair(part(PyMethod_GET_SELF(object), Source::Kind::bound_self),
                   part(PyMethod_GET_FUNCTION(object), Source::Kind::bound_function));
}

/// Bound methods are equal if they call equal functions with the same object. Null: one of the two
/// is none.
Value method_compare(Interpreter& interpreter, CompareOperator op, const Value& left,
                     const Value& right) {
  if (op != CompareOperator::Eq && op != CompareOperator::NotEq) return nullptr;
  const auto first = bound_parts(interpreter, left), second = bound_parts(interpreter, right);
  if (!first || !second) return nullptr;
  const bool same = holds(interpreter, first->second, CompareOperator::Eq, second->second) &&
                    identical(interpreter, first->first, second->first);
  return interpreter.boolean(same == (op == CompareOperator::Eq));
}

/// The kind of one of Python's own classes. Objects of different kinds are never equal. 0: another
/// class.
int kind_for_equality(const Value& value) {
  const PyTypeObject* type = class_of(value);
  if (type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type) return 1;
  const PyTypeObject* kinds[] = {&PyUnicode_Type, &PyBytes_Type,    &PyTuple_Type, &PyList_Type,
                                 &PyDict_Type,    Py_TYPE(Py_None), &PyMethod_Type};
  const auto place = std::ranges::find(kinds, type);
  return place == std::end(kinds) ? 0 : 2 + static_cast<int>(place - std::begin(kinds));
}

bool of_kinds_that_never_equal(const Value& left, const Value& right) {
  const int first = kind_for_equality(left), second = kind_for_equality(right);
  return first != 0 && second != 0 && first != second;
}

Value compare_run_time(Interpreter& interpreter, CompareOperator op, const Value& left,
                       const Value& right) {
  if (op == CompareOperator::Eq || op == CompareOperator::NotEq) {
    const bool first = as<RuntimeObject>(left) != nullptr;
    Value equal = run_time_equality(interpreter, *as<RuntimeObject>(first ? left : right),
                                    first ? right : left);
    if (equal != nullptr && op == CompareOperator::Eq) return equal;
    if (equal != nullptr)
      return interpreter.number(interpreter.negated_flag(interpreter.graph_value(equal)));
  }
  if (op == CompareOperator::In || op == CompareOperator::NotIn)
    if (const auto* dict = as<RuntimeObject>(right)) {
      const Value found = run_time_contains(interpreter, *dict, left);
      if (op == CompareOperator::In) return found;
      return interpreter.number(interpreter.negated_flag(interpreter.graph_value(found)));
    }
  if (op != CompareOperator::Is && op != CompareOperator::IsNot)
    interpreter.refuse(ReasonCode::expression,
                       cat("the comparison ", syntax::symbol(op), " of objects met at run time"));
  Value same = run_time_identity(interpreter, left, right);
  if (op == CompareOperator::Is) return same;
  if (const auto* known = as<Known>(same)) return interpreter.boolean(known->object.is(Py_False));
  return interpreter.number(interpreter.negated_flag(interpreter.graph_value(same)));
}

/// number in tensor, tensor in tensor: whether any element is equal; null where that raises.
Value tensor_membership(Interpreter& interpreter, const Value& tensor, const Value& element) {
  if (as<Tensor>(tensor) == nullptr || !(is_number(element) || as<Tensor>(element) != nullptr))
    return nullptr;
  const Value same = tensor_compare(interpreter, CompareOperator::Eq, tensor, element);
  return item(interpreter, *tensor_by(interpreter, "any", {same}));
}

Value found_in(Interpreter& interpreter, const Value& container, const Value& element) {
  if (const Value found = tensor_membership(interpreter, container, element)) return found;
  return membership(interpreter, container, element);
}

/// `x is None`, `x is not None`
Value optional_compare(Interpreter& interpreter, CompareOperator op, const Optional& optional) {
  return interpreter.number(op == CompareOperator::IsNot ? optional.flag
                                                         : interpreter.negated_flag(optional.flag));
}

}  // namespace

Value compare_remainders(Interpreter& interpreter, CompareOperator op, const Value& left,
                         const Value& right) {
  const bool asks_equality = op == CompareOperator::Eq || op == CompareOperator::NotEq;
  if (!asks_equality || !is_number(left) || !is_number(right)) return nullptr;
  const std::optional<Dim> a = dim_of(left), b = dim_of(right);
  if (!a || !b) return nullptr;
  const std::optional<Dim> difference = subtracted(*a, *b), opposite = subtracted(*b, *a);
  if (!difference || !opposite) return nullptr;
  const bool is_decided = difference->is_constant() || difference->lower_bound().value_or(0) > 0 ||
                          opposite->lower_bound().value_or(0) > 0;
  const Object left_example = example_of(left), right_example = example_of(right);
  if (is_decided || !left_example || !right_example || !is_of_remainder(*difference))
    return nullptr;
  const Object example = interpreter.must(
      PyObject_RichCompare(left_example.get(), right_example.get(), python_comparison(op)));
  return number_test(interpreter, op, left, right, example);
}

Value compare_values(Interpreter& interpreter, CompareOperator op, const Value& given_left,
                     const Value& given_right) {
  const auto use = [&](const Value& a, const Value& b) { return compare(interpreter, op, a, b); };
  if (Value both = for_both(interpreter, given_left, given_right, use)) return both;
  if (as<RuntimeObject>(given_left) != nullptr || as<RuntimeObject>(given_right) != nullptr)
    return compare_run_time(interpreter, op, given_left, given_right);
  if (op == CompareOperator::Is || op == CompareOperator::IsNot) {
    if (const auto* left = as<Optional>(given_left); left != nullptr && is_none(given_right))
      return optional_compare(interpreter, op, *left);
    if (const auto* right = as<Optional>(given_right); right != nullptr && is_none(given_left))
      return optional_compare(interpreter, op, *right);
    if (const Value same = number_identity(interpreter, op, given_left, given_right)) return same;
  }
  switch (op) {
    case CompareOperator::Is:
      return interpreter.boolean(identical(interpreter, given_left, given_right));
    case CompareOperator::IsNot:
      return interpreter.boolean(!identical(interpreter, given_left, given_right));
    case CompareOperator::In:
      return found_in(interpreter, given_right, given_left);
    case CompareOperator::NotIn: {
      const Value found = found_in(interpreter, given_right, given_left);
      if (known_object(found) != nullptr)
        return interpreter.boolean(known_object(found) != Py_True);
      return interpreter.number(interpreter.negated_flag(interpreter.graph_value(found)));
    }
    default:
      break;
  }
  const Value left = plain_number(interpreter, given_left, {comparison_method(op)});
  const bool by_tensor = as<Tensor>(given_left) != nullptr;
  const Value right =
      by_tensor ? plain_number(interpreter, given_right, {})
                : plain_number(interpreter, given_right, {comparison_method(reflected(op))});
  if (Value result = set_compare(interpreter, op, left, right)) return result;
  if (Value result = compare_views(interpreter, op, left, right)) return result;
  if (Value result = compare_identity_numbers(interpreter, op, left, right)) return result;
  if (Value result = method_compare(interpreter, op, left, right)) return result;
  if (as<Instance>(left) != nullptr || as<Instance>(right) != nullptr)
    return compare_instances(interpreter, op, left, right);
  if (is_constant(left) && is_constant(right))
    return interpreter.constant(interpreter.must(PyObject_RichCompare(
        as<Known>(left)->object.get(), as<Known>(right)->object.get(), python_comparison(op))));
  if (as<Tensor>(left) != nullptr || as<Tensor>(right) != nullptr)
    return tensor_compare(interpreter, op, left, right);
  if (is_number(left) && is_number(right)) return number_compare(interpreter, op, left, right);
  Value a = opened(interpreter, left), b = opened(interpreter, right);
  const auto* first = as<Sequence>(a);
  const auto* second = as<Sequence>(b);
  if (first != nullptr && second != nullptr)
    return sequence_compare(interpreter, op, *first, *second);
  const auto *one_dict = as<Dictionary>(a), *other_dict = as<Dictionary>(b);
  if (one_dict != nullptr && other_dict != nullptr &&
      (op == CompareOperator::Eq || op == CompareOperator::NotEq) && !one_dict->type &&
      !other_dict->type)
    return dict_equality(interpreter, op, *one_dict, *other_dict);
  const auto* left_known = as<Known>(left);
  const auto* right_known = as<Known>(right);
  if (left_known != nullptr && right_known != nullptr && first == nullptr && second == nullptr)
    return object_compare(interpreter, op, *left_known, *right_known, left, right);
  for (const Known* known : {left_known, right_known})
    if (known != nullptr && (Py_TYPE(known->object.get())->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0)
      return compare_instances(interpreter, op, left, right);
  bool equality = op == CompareOperator::Eq || op == CompareOperator::NotEq;
  if (equality && left == right) return interpreter.boolean(op == CompareOperator::Eq);
  if (equality && of_kinds_that_never_equal(left, right))
    return interpreter.boolean(op == CompareOperator::NotEq);
  // None equals nothing but itself.
  for (const Known* known : {left_known, right_known})
    if (equality && known != nullptr && known->object.is(Py_None))
      return interpreter.boolean(op == CompareOperator::NotEq);
  interpreter.refuse(ReasonCode::expression, cat("the comparison ", syntax::symbol(op)));
}

}  // namespace janus::frontend
