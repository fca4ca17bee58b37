// A number that only the run knows is compared with all candidates in the graph; everything else
// is looked up now.
#include "frontend/objects/membership.h"

#include <algorithm>

#include "frontend/control/entry_lists.h"
#include "frontend/control/list_order.h"
#include "frontend/core/class_of.h"
#include "frontend/core/flags.h"
#include "frontend/core/heap.h"
#include "frontend/core/keys.h"
#include "frontend/core/narrowing.h"
#include "frontend/core/operations.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/entry_containers.h"
#include "frontend/objects/folding.h"
#include "frontend/objects/iteration.h"
#include "frontend/objects/sets.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/constants.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/symbolic_list.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;

namespace {

/// Whether a number that only the run knows is one of the keys.
Value holds_number(Interpreter& interpreter, const std::vector<Object>& keys, const Value& number) {
  Value found = interpreter.boolean(false);
  for (const Object& key : keys) {
    const Value known = interpreter.constant(key);
    if (!is_number(known)) continue;
    found = either_flag(interpreter, found,
                        compare(interpreter, syntax::CompareOperator::Eq, number, known));
  }
  // In the call at hand it is one or none of them.
  const auto& varying = *as<Number>(number);
  if (auto* flag = as<Number>(found); flag != nullptr && varying.example && !flag->example) {
    bool any = false;
    for (const Object& key : keys)
      any = any || same_key(interpreter, key.get(), varying.example.get());
    flag->example = Object::borrow(any ? Py_True : Py_False);
  }
  return found;
}

/// Whether a number that only the run knows is in a range.
Value is_in_range(Interpreter& interpreter, PyObject* range, const Value& number) {
  using syntax::CompareOperator, syntax::Operator;
  const auto bound = [&](const char* name) {
    return interpreter.constant(python::attribute(range, name));
  };
  const Value start = bound("start"), step = bound("step");
  const Value inside[] = {compare(interpreter, CompareOperator::GtE, number, start),
                          compare(interpreter, CompareOperator::Lt, number, bound("stop")),
                          compare(interpreter, CompareOperator::Eq,
                                  binary(interpreter, Operator::Mod,
                                         binary(interpreter, Operator::Sub, number, start), step),
                                  interpreter.integer(0))};
  Value all = interpreter.boolean(true);
  for (const Value& each : inside) all = both_flags(interpreter, all, each);
  return all;
}

/// `element in tensor` raises where the element is nothing that a tensor may hold.
void expect_element_of_tensor(Interpreter& interpreter, const Value& container,
                              const Value& element) {
  if (as<Tensor>(container) == nullptr || as<Tensor>(element) != nullptr) return;
  PyObject* const object = known_object(element);
  if (!is_number(element) && (object == nullptr || PyNumber_Check(object) == 0))
    interpreter.refuse(ReasonCode::would_raise,
                       "RuntimeError: whether a tensor contains what is no number");
}

/// Whether it is one of the elements of a list or tuple.
Value holds_element(Interpreter& interpreter, const Value& container, const Value& element) {
  if (const Rolled* list = rolled(opened_if_varying(interpreter, container)))
    if (Value place = position_in(interpreter, std::make_shared<Rolled>(*list), element))
      return compare(interpreter, syntax::CompareOperator::GtE, place, interpreter.integer(0));
  const auto equal = [&](const Value& candidate) {
    return compare(interpreter, syntax::CompareOperator::Eq, candidate, element);
  };
  // Of what is no container, elements are taken until one is the one.
  if (as<Sequence>(opened(interpreter, container)) == nullptr) {
    const std::shared_ptr<Iterator> iterator = iterate(interpreter, container);
    for (int64_t iterations = 0; const Value candidate = iterator->next(); ++iterations) {
      if (iterations > Interpreter::most_rounds())
        interpreter.refuse(ReasonCode::limit, "a container of too many elements");
      if (candidate == element || truth(interpreter, equal(candidate), -1))
        return interpreter.boolean(true);
    }
    return interpreter.boolean(false);
  }
  Value found = interpreter.boolean(false);
  for (const Value& candidate : elements_of(interpreter, container)) {
    if (candidate == element) return interpreter.boolean(true);
    if (is_number(candidate) && is_number(element))
      found = either_flag(interpreter, found, equal(candidate));
    else if (truth(interpreter, equal(candidate), -1))
      return interpreter.boolean(true);
  }
  return found;
}

/// The constants among the elements. Objects are left out: no number is equal to one.
std::vector<Object> constants_of_set(const SetValue& set) {
  std::vector<Object> constants;
  for (const Value& element : set.elements)
    if (PyObject* object = known_object(element)) constants.push_back(Object::borrow(object));
  return constants;
}

std::vector<Object> keys_of_dict(const Dictionary& dictionary) {
  std::vector<Object> keys;
  for (const auto& [key, value] : dictionary.items) keys.push_back(key);
  return keys;
}

bool contains_key(Interpreter& interpreter, const Value& container, const Value& element) {
  if (as<Instance>(container) != nullptr) {
    if (Value method = special_method(interpreter, container, "__contains__")) {
      CallArguments arguments;
      arguments.positional = {element};
      return truth(interpreter, call(interpreter, method, arguments), -1);
    }
  }
  if (const auto* known = as<Known>(container)) {
    PyObject* object = known->object.get();
    if (PyAnySet_CheckExact(object) && known->source != nullptr) {
      Object key = key_object(interpreter, element);
      const Held changed = interpreter.heap.find(interpreter, object, key.get(), known->source);
      if (!changed.is_unknown()) return changed.is_value();
      return interpreter.held_at_entry(*known, key);
    }
    if (PyDict_Check(object) && is_plain_dict(object)) {
      Object key = key_object(interpreter, element);
      const Held changed = interpreter.heap.find(interpreter, object, key.get(), known->source);
      if (!changed.is_unknown()) return changed.is_value();
      PyObject* value = PyDict_GetItemWithError(object, key.get());
      if (PyErr_Occurred() != nullptr) interpreter.refuse_raised();
      // That the key is there is assumed by what is read under it.
      if (value != nullptr)
        dict_part(interpreter, value, *known, key);
      else
        interpreter.assume(Assumption::Kind::missing_key, known->source, key);
      return value != nullptr;
    }
    if (is_immutable_constant(object) || (PyRange_Check(object) && known->source == nullptr)) {
      if (PyUnicode_Check(object) || PyRange_Check(object) || PyBytes_Check(object)) {
        int found = PySequence_Contains(object, folded(interpreter, element).get());
        if (found < 0) interpreter.refuse_raised();
        return found == 1;
      }
    }
    if (opened(interpreter, container) == container) {
      if (Value method = special_method(interpreter, container, "__contains__")) {
        CallArguments arguments;
        arguments.positional = {element};
        return truth(interpreter, call(interpreter, method, arguments), -1);
      }
    }
  }
  if (const auto* dictionary = as<Dictionary>(container)) {
    const Object key = key_object(interpreter, element);
    return std::ranges::any_of(dictionary->items, [&](const auto& item) {
      return same_key(interpreter, item.first.get(), key.get());
    });
  }
  if (const auto* set = as<SetValue>(container))
    return holds(interpreter, set->elements, set_element(interpreter, element));
  return truth(interpreter, holds_element(interpreter, container, element), -1);
}

}  // namespace

Value membership(Interpreter& interpreter, const Value& container, const Value& element) {
  expect_narrowed(container);
  expect_narrowed(element);
  expect_element_of_tensor(interpreter, container, element);
  const Value shadow = as<Number>(element) != nullptr ? opened(interpreter, container) : container;
  if (as<Number>(element) != nullptr) {
    if (const auto* dictionary = as<Dictionary>(shadow))
      return holds_number(interpreter, keys_of_dict(*dictionary), element);
    if (const auto* set = as<SetValue>(shadow))
      return holds_number(interpreter, constants_of_set(*set), element);
  }
  const auto* known = as<Known>(container);
  if (known != nullptr && PyRange_Check(known->object.get()) && known->source == nullptr &&
      as<Number>(element) != nullptr && class_of(element) == &PyLong_Type &&
      PyLong_AsLongLong(python::attribute(known->object.get(), "step").get()) > 0)
    return is_in_range(interpreter, known->object.get(), element);
  const bool is_list = as<Sequence>(shadow) != nullptr ||
                       (known != nullptr && (PyList_CheckExact(known->object.get()) ||
                                             PyTuple_CheckExact(known->object.get())));
  if (is_list) return holds_element(interpreter, container, element);
  return interpreter.boolean(contains_key(interpreter, container, element));
}

bool contains(Interpreter& interpreter, const Value& container, const Value& element) {
  return truth(interpreter, membership(interpreter, container, element), -1);
}

}  // namespace janus::frontend
