// Python's builtin functions and classes that make containers and iterators, or go through them.
#include <algorithm>

#include "frontend/control/counted.h"
#include "frontend/control/entry_lists.h"
#include "frontend/control/list_order.h"
#include "frontend/control/list_reductions.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/known_callables.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/library/builtins.h"
#include "frontend/library/special_callables.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/container_methods.h"
#include "frontend/objects/folding.h"
#include "frontend/objects/iteration.h"
#include "frontend/objects/lengths.h"
#include "frontend/objects/named_attribute.h"
#include "frontend/objects/protocol.h"
#include "frontend/objects/subscripts.h"
#include "frontend/values/constants.h"
#include "frontend/values/make.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/restart.h"
#include "frontend/values/symbolic_list.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;
using syntax::Operator;

namespace {

using Arguments = CallArguments;

Value call_list(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 0, 1, "list");
  if (arguments.positional.empty()) return make_list({});
  const Value given = opened_if_varying(interpreter, arguments.positional[0]);
  if (const Rolled* list = rolled(given)) {
    auto copy = std::make_shared<Sequence>(true);
    copy->elements = ElementList(std::make_shared<Rolled>(*list));
    return copy;
  }
  return make_list(elements_of(interpreter, arguments.positional[0]));
}

Value call_tuple(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 0, 1, "tuple");
  if (arguments.positional.empty()) return make_tuple({});
  const Value& value = arguments.positional[0];
  // tuple(t) of a tuple is t itself.
  if (const auto* known = as<Known>(value);
      known != nullptr && PyTuple_CheckExact(known->object.get()))
    return value;
  if (const auto* sequence = as<Sequence>(value); sequence != nullptr && is_plain_tuple(*sequence))
    return value;
  const Value given = opened_if_varying(interpreter, value);
  if (rolled(given) == nullptr) return make_tuple(elements_of(interpreter, value));
  auto tuple = std::make_shared<Sequence>(false);
  tuple->elements = as<Sequence>(given)->elements;
  return tuple;
}

/// torch.Size(sizes)
Value call_size(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 0, 1, "torch.Size");
  auto size = std::make_shared<Sequence>(false);
  size->type = Object::borrow(reinterpret_cast<PyObject*>(size_class()));
  if (arguments.positional.empty()) return size;
  for (const Value& each : elements_of(interpreter, arguments.positional[0])) {
    if (class_of(each) != &PyLong_Type)
      interpreter.refuse(ReasonCode::unsupported_argument, "torch.Size of other than ints");
    size->elements.push_back(each);
  }
  return size;
}

Value call_dict(Interpreter& interpreter, const Arguments& arguments) {
  auto dictionary = std::make_shared<Dictionary>();
  Value update = container_method(interpreter, dictionary, "update");
  if (arguments.positional.size() > 1) refuse_arguments(interpreter, "dict");
  call(interpreter, update, arguments);
  return dictionary;
}

Value call_slice(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 1, 3, "slice");
  auto slice = std::make_shared<SliceValue>();
  const auto& given = arguments.positional;
  slice->start = given.size() > 1 ? given[0] : interpreter.none();
  slice->stop = given.size() > 1 ? given[1] : given[0];
  slice->step = given.size() > 2 ? given[2] : interpreter.none();
  return slice;
}

/// range() of numbers; bounds that are dimensions take their present value, which is then assumed.
Value call_range(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 1, 3, "range");
  Object bounds = interpreter.must(PyTuple_New(Py_ssize_t(arguments.positional.size())));
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    const Value& bound = arguments.positional[i];
    Object object;
    if (const auto* number = as<Number>(bound)) {
      if (!number->dim || !number->example)
        interpreter.refuse(ReasonCode::dynamic_value, "a bound of range()");
      interpreter.assume_equal(
          *number->dim, graph::Dim(static_cast<int64_t>(PyLong_AsLongLong(number->example.get()))));
      object = number->example;
    } else {
      object = folded(interpreter, bound);
    }
    PyTuple_SET_ITEM(bounds.get(), Py_ssize_t(i), object.release());
  }
  Object range = interpreter.must(
      PyObject_Call(reinterpret_cast<PyObject*>(&PyRange_Type), bounds.get(), nullptr));
  return interpreter.constant(range);
}

Value call_iter(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 1, 1, "iter");
  return iterate(interpreter, arguments.positional[0]);
}

Value call_next(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 1, 2, "next");
  auto* iterator = as<Iterator>(arguments.positional[0]);
  if (iterator == nullptr) interpreter.refuse(ReasonCode::unknown_callable, "next");
  if (Value element = iterator->next()) return element;
  if (arguments.positional.size() > 1) return arguments.positional[1];
  if (iterator->returned != nullptr && !is_none(iterator->returned))
    interpreter.refuse(ReasonCode::generator, "what next() finds exhausted");
  raise(interpreter, PyExc_StopIteration, "StopIteration");
}

/// What enumerate() counts from: an int, whatever it is given.
Value first_count(Interpreter& interpreter, const Value& start) {
  if (is_int_number(start)) return start;
  if (is_flag(start)) return interpreter.integer(truth(interpreter, start, -1) ? 1 : 0);
  const Object number = folded(interpreter, start);
  return interpreter.constant(interpreter.must(PyNumber_Index(number.get())));
}

Value call_enumerate(Interpreter& interpreter, const Arguments& arguments) {
  const Value* start =
      arguments.positional.size() > 1 ? &arguments.positional[1] : arguments.keyword("start");
  const size_t starts = start == nullptr ? 0 : 1;
  if (arguments.positional.empty() ||
      arguments.positional.size() + arguments.keywords.size() > 1 + starts)
    refuse_arguments(interpreter, "enumerate");
  auto iterator = iterate(interpreter, arguments.positional[0]);
  auto count = std::make_shared<Value>(start != nullptr ? first_count(interpreter, *start)
                                                        : interpreter.integer(0));
  return std::make_shared<Iterator>([&interpreter, iterator, count]() -> Value {
    Value element = iterator->next();
    if (element == nullptr) return nullptr;
    Value position = *count;
    *count = binary(interpreter, Operator::Add, position, interpreter.integer(1));
    return make_tuple({position, element});
  });
}

Value call_zip(Interpreter& interpreter, const Arguments& arguments) {
  bool strict = false;
  if (const Value* flag = arguments.keyword("strict")) strict = truth(interpreter, *flag, -1);
  auto iterators = std::make_shared<std::vector<std::shared_ptr<Iterator>>>();
  for (const Value& value : arguments.positional) iterators->push_back(iterate(interpreter, value));
  return std::make_shared<Iterator>([&interpreter, iterators, strict]() -> Value {
    std::vector<Value> elements;
    for (const auto& iterator : *iterators) {
      Value element = iterator->next();
      if (element == nullptr) {
        // strict: all must end together; checking that could only raise.
        if (strict && !elements.empty())
          interpreter.refuse(ReasonCode::would_raise, "ValueError: zip() of unequal lengths");
        if (strict)
          for (size_t i = 1; i < iterators->size(); ++i)
            if ((*iterators)[i]->next() != nullptr)
              interpreter.refuse(ReasonCode::would_raise, "ValueError: zip() of unequal lengths");
        return nullptr;
      }
      elements.push_back(std::move(element));
    }
    return elements.empty() ? nullptr : make_tuple(std::move(elements));
  });
}

/// Of an object of the program's that is no container of Python's own: its items, from the last
/// one. Null: another object. What has no positions is not reversed.
Value reversed_by_items(Interpreter& interpreter, const Value& value) {
  const bool is_object = as<Instance>(value) != nullptr || as<Known>(value) != nullptr;
  PyTypeObject* const type = is_object ? class_of(value) : nullptr;
  const auto is_of = [&](PyTypeObject& of) { return PyType_IsSubtype(type, &of) != 0; };
  const bool is_set = as<SetValue>(value) != nullptr ||
                      (is_object && (is_of(PySet_Type) || is_of(PyFrozenSet_Type)));
  if (is_set || as<Iterator>(value) != nullptr)
    raise(interpreter, PyExc_TypeError, "TypeError: what has no positions is not reversed");
  if (!is_object || (type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0 || is_of(PyList_Type) ||
      is_of(PyTuple_Type) || is_of(PyDict_Type) || is_of(PyType_Type))
    return nullptr;
  PyObject* const own = _PyType_Lookup(type, name_object(interpreter, "__reversed__").get());
  if (own == Py_None || !has_written(value, "__getitem__") || !has_written(value, "__len__"))
    interpreter.refuse(ReasonCode::would_raise, "TypeError: an object that is not reversible");
  const Object length = folded(interpreter, length_of(interpreter, value));
  auto position = std::make_shared<int64_t>(PyLong_AsLongLong(length.get()));
  return std::make_shared<Iterator>([&interpreter, value, position]() -> Value {
    if (*position == 0) return nullptr;
    return subscript(interpreter, value, interpreter.integer(--*position));
  });
}

/// Of a list, which may change on the way: the elements that stand at its positions then.
Value reversed_list(const std::shared_ptr<Sequence>& list) {
  auto position = std::make_shared<size_t>(list->elements.size());
  return std::make_shared<Iterator>([list, position]() -> Value {
    if (*position == 0 || *position > list->elements.size()) return nullptr;
    return list->elements[--*position];
  });
}

/// The method of an object whose class is derived from list; null for any other.
Value method_of_list(Interpreter& interpreter, const Value& value, const char* name) {
  const bool is_object = as<Instance>(value) != nullptr || as<Known>(value) != nullptr;
  PyTypeObject* const type = is_object ? class_of(value) : nullptr;
  return type != &PyList_Type && is_list_class(type) ? special_method(interpreter, value, name)
                                                     : nullptr;
}

Value call_reversed(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 1, 1, "reversed");
  if (Value result = by_own_method(interpreter, arguments, "__reversed__")) return result;
  const Value& value = arguments.positional[0];
  if (const Value method = method_of_list(interpreter, value, "__reversed__"))
    return call(interpreter, method, {});
  if (Value result = reversed_by_items(interpreter, value)) return result;
  // Python does not ask it for the elements in reverse.
  if (has_written_method(value, "__iter__")) refuse_arguments(interpreter, "reversed");
  const Value shadow = opened(interpreter, value);
  if (const auto list = shared_as<Sequence>(shadow);
      list != nullptr && list->is_list && list->elements.rolled() == nullptr)
    return reversed_list(list);
  std::vector<Value> elements = elements_of(interpreter, value);
  std::reverse(elements.begin(), elements.end());
  return iterate_elements(std::move(elements));
}

Value call_map(Interpreter& interpreter, const Arguments& arguments) {
  if (arguments.positional.size() < 2 || !arguments.keywords.empty())
    refuse_arguments(interpreter, "map");
  Value function = arguments.positional[0];
  Arguments rest;
  rest.positional.assign(arguments.positional.begin() + 1, arguments.positional.end());
  auto tuples = shared_as<Iterator>(call_zip(interpreter, rest));
  return std::make_shared<Iterator>([&interpreter, function, tuples]() -> Value {
    Value tuple = tuples->next();
    if (tuple == nullptr) return nullptr;
    Arguments one;
    one.positional = as<Sequence>(tuple)->elements;
    return call(interpreter, function, one);
  });
}

Value call_filter(Interpreter& interpreter, const Arguments& arguments) {
  expect(interpreter, arguments, 2, 2, "filter");
  Value function = arguments.positional[0];
  auto iterator = iterate(interpreter, arguments.positional[1]);
  return std::make_shared<Iterator>([&interpreter, function, iterator]() -> Value {
    while (Value element = iterator->next()) {
      Arguments one;
      one.positional = {element};
      Value keep = is_none(function) ? element : call(interpreter, function, one);
      if (truth(interpreter, keep, -1)) return element;
    }
    return nullptr;
  });
}

/// any (stops at a true element) and all (stops at a false one).
Value any_or_all(Interpreter& interpreter, const Arguments& arguments, bool stop_at) {
  expect(interpreter, arguments, 1, 1, stop_at ? "any" : "all");
  const Value given = opened_if_varying(interpreter, arguments.positional[0]);
  if (const Rolled* list = rolled(given);
      list != nullptr && list->form.kind == ElementForm::Kind::number)
    return accumulated(
        interpreter, *list, interpreter.boolean(!stop_at),
        [&](const Value& so_far, const Value& element) {
          graph::Builder& builder = interpreter.builder();
          graph::Value* flag = op::scalar_bool(builder, {interpreter.graph_value(element)});
          graph::Value* before = interpreter.graph_value(so_far);
          return interpreter.number(stop_at ? op::scalar_or(builder, {before, flag})
                                            : op::scalar_and(builder, {before, flag}));
        });
  auto iterator = iterate(interpreter, arguments.positional[0]);
  while (Value element = iterator->next())
    if (truth(interpreter, element, -1) == stop_at) return interpreter.boolean(stop_at);
  return interpreter.boolean(!stop_at);
}
Value call_any(Interpreter& interpreter, const Arguments& arguments) {
  return any_or_all(interpreter, arguments, true);
}
Value call_all(Interpreter& interpreter, const Arguments& arguments) {
  return any_or_all(interpreter, arguments, false);
}

/// The elements in the order of keys that are known, in which Python puts them itself: where keys
/// have no order (NaN), the result tells how it went through them.
std::vector<Value> sorted_by_known(Interpreter& interpreter, const std::vector<Value>& elements,
                                   const std::vector<Value>& keys, bool descends) {
  const auto count = static_cast<Py_ssize_t>(elements.size());
  const Object known = interpreter.must(PyList_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    Object object = folded(interpreter, keys[static_cast<size_t>(i)]);
    if (!is_immutable_constant(object.get())) refuse_arguments(interpreter, "sorted");
    PyList_SET_ITEM(known.get(), i, object.release());
  }
  const Object positions = interpreter.must(PySequence_List(
      python::call(reinterpret_cast<PyObject*>(&PyRange_Type), {python::integer(count).get()})
          .get()));
  const Object order = interpreter.must(PyDict_New());
  const Object key = python::attribute(known.get(), "__getitem__");
  python::check_status(PyDict_SetItemString(order.get(), "key", key.get()));
  python::check_status(PyDict_SetItemString(order.get(), "reverse", descends ? Py_True : Py_False));
  const Object sort = python::attribute(positions.get(), "sort");
  const Object nothing = interpreter.must(PyTuple_New(0));
  interpreter.must(PyObject_Call(sort.get(), nothing.get(), order.get()));
  std::vector<Value> sorted;
  for (const Object& position : python::elements(positions.get()))
    sorted.push_back(elements[PyLong_AsSize_t(position.get())]);
  return sorted;
}

Value call_sorted(Interpreter& interpreter, const Arguments& arguments) {
  const Value* given_key = arguments.keyword("key");
  const Value key = given_key != nullptr ? *given_key : nullptr;
  const Value* reverse = arguments.keyword("reverse");
  if (arguments.positional.size() != 1) refuse_arguments(interpreter, "sorted");
  const bool descends = reverse != nullptr && truth(interpreter, *reverse, -1);
  const Value given = opened_if_varying(interpreter, arguments.positional[0]);
  if (const Rolled* list = rolled(given)) {
    auto sorted = sorted_list(interpreter, std::make_shared<Rolled>(*list), key, descends);
    if (sorted == nullptr)
      throw CannotMerge{list->test, "elements are sorted by other things than numbers"};
    auto all = std::make_shared<Sequence>(true);
    all->elements = ElementList(std::move(sorted));
    return all;
  }
  const std::vector<Value> elements = elements_of(interpreter, given);
  std::vector<Value> keys;
  for (const Value& element : elements) keys.push_back(key_of(interpreter, key, element));
  if (auto sorted = sorted_numbers(interpreter, elements, keys, descends))
    return make_list(std::move(*sorted));
  return make_list(sorted_by_known(interpreter, elements, keys, descends));
}

}  // namespace

std::span<const SpecialCallable> builtin_container_callables() {
  static constexpr SpecialCallable table[] = {
      {"builtins.list", call_list},
      {"builtins.tuple", call_tuple},
      {"torch.Size", call_size},
      {"builtins.dict", call_dict},
      {"builtins.slice", call_slice},
      {"builtins.range", call_range},
      {"builtins.iter", call_iter},
      {"builtins.next", call_next},
      {"builtins.enumerate", call_enumerate},
      {"builtins.zip", call_zip},
      {"builtins.reversed", call_reversed},
      {"builtins.map", call_map},
      {"builtins.filter", call_filter},
      {"builtins.any", call_any},
      {"builtins.all", call_all},
      {"builtins.sorted", call_sorted},
  };
  return table;
}

}  // namespace janus::frontend
