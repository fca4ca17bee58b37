// A single item of a container that existed before the call is guarded alone; everything else opens
// the container.
#include "frontend/objects/subscripts.h"

#include <algorithm>

#include "frontend/control/effects.h"
#include "frontend/control/list_parts.h"
#include "frontend/control/optional.h"
#include "frontend/control/slice_positions.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/heap.h"
#include "frontend/core/keys.h"
#include "frontend/core/object_kinds.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/default_factory.h"
#include "frontend/objects/dict_views.h"
#include "frontend/objects/entry_containers.h"
#include "frontend/objects/folding.h"
#include "frontend/objects/lists.h"
#include "frontend/objects/membership.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/make.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/symbolic_list.h"
#include "ops/list.h"
#include "python/integer.h"
#include "python/version.h"

namespace janus::frontend {

using python::Object;

namespace {

Value* find_item(const Frames& frames, Dictionary& dictionary, PyObject* key) {
  for (auto& [existing, value] : dictionary.items)
    if (same_key(frames, existing.get(), key)) return &value;
  return nullptr;
}

/// What d[key] gives where there is no such key: a defaultdict's value is made and stored, a
/// Counter's is 0.
Value missing_item(Interpreter& interpreter, const Value& self, const Value& key) {
  PyTypeObject* type = class_of(self);
  if (is_counter(type)) return interpreter.integer(0);
  if (type != default_dict_type()) raise(interpreter, PyExc_KeyError, "KeyError");
  const Value factory = factory_of(interpreter, self);
  if (const auto* none = as<Known>(factory); none != nullptr && none->object.is(Py_None))
    raise(interpreter, PyExc_KeyError, "KeyError");
  Value value = call(interpreter, factory, {});
  write_subscript(interpreter, self, key, value);
  return value;
}

/// Of a list that grew in the graph: one element, or all of them from the end to the beginning.
Value rolled_subscript(Interpreter& interpreter, const Sequence& sequence, const Value& key) {
  const std::shared_ptr<const Rolled>& list = sequence.elements.rolled();
  const auto is_known = [](const Value& value, auto&& matches) {
    const auto* known = as<Known>(value);
    return known != nullptr && matches(known->object.get());
  };
  const auto is_none = [](PyObject* object) { return object == Py_None; };
  if (const auto* slice = as<SliceValue>(key)) {
    if (sequence.type) return nullptr;  // deques have no slices
    bool reverses =
        is_known(slice->start, is_none) && is_known(slice->stop, is_none) &&
        is_known(slice->step, [](PyObject* object) {
          return PyLong_CheckExact(object) && PyLong_AsLong(object) == -1 && !PyErr_Occurred();
        });
    PyErr_Clear();
    const bool by_one = is_known(slice->step, [](PyObject* object) {
      return object == Py_None || (PyLong_CheckExact(object) && PyLong_AsLong(object) == 1);
    });
    PyErr_Clear();
    std::shared_ptr<const Rolled> part = reverses ? reversed(*list)
                                         : by_one
                                             ? part_of(interpreter, list, slice->start, slice->stop)
                                             : nullptr;
    if (part == nullptr) return nullptr;
    auto result = std::make_shared<Sequence>(sequence.is_list);
    result->elements = ElementList(std::move(part));
    return result;
  }
  const auto* number = as<Number>(key);
  bool is_position = (number != nullptr && number->type == graph::Type::Kind::i64) ||
                     is_known(key, [](PyObject* object) { return PyLong_CheckExact(object); });
  return is_position ? element_at(interpreter, *list, key) : nullptr;
}

/// A slice of a list or tuple of numbers, of which only the run knows a bound; null: it is another.
Value numbers_of_slice(Interpreter& interpreter, const Sequence& sequence,
                       const SliceValue& slice) {
  const bool varies = as<Number>(slice.start) != nullptr || as<Number>(slice.stop) != nullptr;
  if (!varies || sequence.type || !std::ranges::all_of(sequence.elements.known(), is_number))
    return nullptr;
  const auto length = static_cast<int64_t>(sequence.elements.size());
  const auto positions = slice_positions(interpreter, slice, interpreter.integer(length));
  if (!positions) return nullptr;
  auto part = std::make_shared<Sequence>(sequence.is_list);
  for (const Value& position : *positions) {
    part->elements.push_back(element_at(interpreter, sequence.elements, position));
    if (part->elements.known().back() == nullptr) return nullptr;
  }
  return part;
}

Value sequence_subscript(Interpreter& interpreter, const Sequence& sequence, const Value& key) {
  const auto* slice = as<SliceValue>(key);
  if (sequence.elements.rolled() != nullptr)
    if (Value part = rolled_subscript(interpreter, sequence, key)) return part;
  if (slice == nullptr) {
    if (as<Number>(key) != nullptr)
      if (Value chosen = element_at(interpreter, sequence.elements, key)) return chosen;
    return sequence.elements[checked_index(interpreter, sequence, key)];
  }
  if (is_deque(sequence))
    interpreter.refuse(ReasonCode::would_raise, "TypeError: a slice of a deque");
  if (Value part = numbers_of_slice(interpreter, sequence, *slice)) return part;
  SliceRange range = slice_range(interpreter, *slice, sequence.elements.size());
  // All of a tuple is the tuple itself.
  const bool is_whole = range.start == 0 && range.step == 1 &&
                        range.count == static_cast<Py_ssize_t>(sequence.elements.size());
  if (is_plain_tuple(sequence) && is_whole)
    return std::const_pointer_cast<AbstractValue>(sequence.shared_from_this());
  auto result = std::make_shared<Sequence>(sequence.is_list);
  if (sequence.type.is(reinterpret_cast<PyObject*>(size_class()))) result->type = sequence.type;
  for (Py_ssize_t i = 0; i < range.count; ++i)
    result->elements.push_back(
        sequence.elements[static_cast<size_t>(range.start + i * range.step)]);
  return result;
}

/// One item of a real dict: only this one is guarded.
Value dict_subscript(Interpreter& interpreter, const Value& self, const Value& key) {
  const auto& known = *as<Known>(self);
  if (!contains(interpreter, self, key)) return missing_item(interpreter, self, key);
  Object object = key_object(interpreter, key);
  const Held changed =
      interpreter.heap.find(interpreter, known.object.get(), object.get(), known.source);
  if (!changed.is_unknown()) return changed.value();
  PyObject* value = PyDict_GetItemWithError(known.object.get(), object.get());
  if (value == nullptr) interpreter.refuse_raised();
  return dict_part(interpreter, value, known, object);
}

/// Whether a class made of dict reads its items as that does.
bool is_item_of_dict(Interpreter& interpreter, const Value& value, const Value& method) {
  static PyObject* const item =
      PyDict_GetItemString(python::class_dict(&PyDict_Type), "__getitem__");
  const auto* bound = as<Method>(method);
  return bound != nullptr && known_object(bound->function) == item &&
         special_method(interpreter, value, "__missing__") == nullptr;
}

/// An item of a dict of a derived class. The run does not change such a dict.
Value item_of_subclass(Interpreter& interpreter, const Known& known, const Value& key) {
  Object object = key_object(interpreter, key);
  PyObject* value = PyDict_GetItemWithError(known.object.get(), object.get());
  if (value == nullptr) interpreter.refuse(ReasonCode::would_raise, "KeyError");
  return dict_part(interpreter, value, known, object);
}

/// list[-n:] of a pre-existing list with at least n elements: its length is not
/// guarded.
Value last_elements(Interpreter& interpreter, const Known& known, const Heap::List* list,
                    const SliceValue& slice) {
  const auto* start = as<Known>(slice.start);
  const auto* stop = as<Known>(slice.stop);
  const auto* step = as<Known>(slice.step);
  if (start == nullptr || stop == nullptr || step == nullptr || known.source == nullptr ||
      !stop->object.is(Py_None) || !step->object.is(Py_None) ||
      !PyLong_CheckExact(start->object.get()) || (list != nullptr && list->shadow != nullptr))
    return nullptr;
  const int64_t first = python::int64_of(start->object.get()).value_or(0);
  if (first >= 0 || first < -Interpreter::most_rounds()) return nullptr;
  const Py_ssize_t count = -first;
  const Py_ssize_t length = PyList_GET_SIZE(known.object.get());
  static const std::vector<Value> nothing;
  const std::vector<Value>& appended = list != nullptr ? list->appended->elements.known() : nothing;
  const Py_ssize_t old = count - static_cast<Py_ssize_t>(appended.size());
  if (old < 0) return nullptr;
  if (old > length) {
    if (list == nullptr || count <= 4) return nullptr;
    interpreter.refuse(ReasonCode::dynamic_value, "the length of a list that grows");
  }
  std::vector<Value> elements;
  for (Py_ssize_t i = -old; i < 0; ++i) {
    PyObject* element = PyList_GET_ITEM(known.object.get(), length + i);
    const Source* source = interpreter.sources().step(Source::Kind::index, known.source, {}, i);
    elements.push_back(interpreter.wrap(element, source));
    if (list != nullptr) note_moving(interpreter, source, element);
  }
  elements.insert(elements.end(), appended.begin(), appended.end());
  return make_list(std::move(elements));
}

/// One element of a real list: only this one is guarded, if counted from the front.
Value list_subscript(Interpreter& interpreter, const Known& known, const Value& key) {
  const auto* index = as<Known>(key);
  PyObject* object = known.object.get();
  const Heap::List* list = interpreter.heap.list(object, known.source);
  const bool unopened = list == nullptr || list->shadow == nullptr;
  std::optional<int64_t> number;
  if (index != nullptr && PyLong_CheckExact(index->object.get()))
    number = python::int64_of(index->object.get());
  const bool is_int = number.has_value();
  const Py_ssize_t position = number.value_or(0);
  if (is_int && position < 0 && PyList_CheckExact(object)) {
    // Counted from the end, only what is there is looked at.
    const Py_ssize_t appended =
        list != nullptr && unopened ? static_cast<Py_ssize_t>(list->appended->elements.size()) : 0;
    if (position >= -appended)
      return list->appended->elements[static_cast<size_t>(appended + position)];
    const Py_ssize_t from_end = position + appended;
    if (unopened && known.source != nullptr && from_end >= -PyList_GET_SIZE(object))
      return part_at_entry(interpreter, PyList_GET_ITEM(object, PyList_GET_SIZE(object) + from_end),
                           known, Source::Kind::index, {}, from_end);
  }
  if (const auto* slice = as<SliceValue>(key); slice != nullptr && PyList_CheckExact(object))
    if (Value last = last_elements(interpreter, known, list, *slice)) return last;
  // What is appended leaves the elements in front of it where they are.
  if (unopened && is_int && position >= 0 && !is_deque(object) &&
      position < PySequence_Fast_GET_SIZE(object))
    return part_at_entry(interpreter, PySequence_Fast_GET_ITEM(object, position), known,
                         Source::Kind::index, {}, position);
  return sequence_subscript(interpreter, *as<Sequence>(open_sequence(interpreter, known)), key);
}

/// Through `__dict__`, it is the object's attribute if no data descriptor stands in its way.
void assume_set_as_attribute(Interpreter& interpreter, const Heap::Target& target,
                             const Object& name) {
  const bool is_name = PyUnicode_CheckExact(name.get());
  PyObject* const of_class =
      is_name ? _PyType_Lookup(Py_TYPE(target.object.get()), name.get()) : nullptr;
  if (!is_name || (of_class != nullptr && Py_TYPE(of_class)->tp_descr_set != nullptr))
    interpreter.refuse(ReasonCode::heap_write, "an item of __dict__");
  const Source* type = interpreter.sources().step(Source::Kind::type, target.owner);
  if (of_class == nullptr)
    return interpreter.assume(Assumption::Kind::missing_attribute, type, name);
  interpreter.assume(Assumption::Kind::exact_type,
                     interpreter.sources().step(Source::Kind::type_attribute, type, name),
                     Object::borrow(reinterpret_cast<PyObject*>(Py_TYPE(of_class))));
}

void write_real_dict(Interpreter& interpreter, const RealDict& dict, const Value& key,
                     const Value& element) {
  Object object = key_object(interpreter, key);
  Heap::Target target = interpreter.dict_target(dict.object, dict.source);
  Source::Kind kind = Source::Kind::item;
  if (target.kind == speculate::HeapWrite::Kind::attribute) {
    assume_set_as_attribute(interpreter, target, object);
    kind = Source::Kind::instance_value;
  }
  interpreter.write_place(target, object, interpreter.sources().step(kind, target.owner, object),
                          Held::stored(element));
}

}  // namespace

Value subscript(Interpreter& interpreter, const Value& value, const Value& key) {
  const auto use = [&](const Value& container, const Value& place) {
    return subscript(interpreter, container, place);
  };
  if (Value both = for_both(interpreter, value, key, use)) return both;
  if (auto tensor = shared_as<Tensor>(value)) return index_tensor(interpreter, tensor, key);
  if (is_view(value)) raise(interpreter, PyExc_TypeError, "TypeError: a view has no subscripts");
  if (const auto* sequence = as<Sequence>(value))
    return sequence_subscript(interpreter, *sequence, key);
  if (auto* dictionary = as<Dictionary>(value)) {
    Value* found = find_item(interpreter, *dictionary, key_object(interpreter, key).get());
    return found != nullptr ? *found : missing_item(interpreter, value, key);
  }
  if (as<Instance>(value) != nullptr) {
    if (Value method = special_method(interpreter, value, "__getitem__")) {
      CallArguments arguments;
      arguments.positional = {key};
      return call(interpreter, method, arguments);
    }
  }
  if (const auto* known = as<Known>(value)) {
    PyObject* object = known->object.get();
    if (PyType_Check(object) && is_enumeration(reinterpret_cast<PyTypeObject*>(object))) {
      interpreter.assume_identity(*known);
      const Object member =
          interpreter.must(PyObject_GetItem(object, folded(interpreter, key).get()));
      return interpreter.wrap(member.get(),
                              interpreter.sources().root(Source::Kind::constant, member));
    }
    if (PyType_Check(object) && Py_TYPE(object) == &PyType_Type) {
      // Generic aliases such as list[Tensor].
      interpreter.assume_identity(*known);
      return interpreter.constant(
          interpreter.must(PyObject_GetItem(object, folded(interpreter, key).get())));
    }
    if (PyUnicode_CheckExact(object) || PyBytes_CheckExact(object) ||
        (PyRange_Check(object) && known->source == nullptr))
      return interpreter.constant(
          interpreter.must(PyObject_GetItem(object, folded(interpreter, key).get())));
    if (is_plain_dict(object)) return dict_subscript(interpreter, value, key);
    if (PyList_CheckExact(object) || is_tuple_like(object) ||
        (is_deque(object) && known->source != nullptr))
      return list_subscript(interpreter, *known, key);
    if (Value method = special_method(interpreter, value, "__getitem__")) {
      if (is_item_of_dict(interpreter, value, method))
        return item_of_subclass(interpreter, *known, key);
      CallArguments arguments;
      arguments.positional = {key};
      return call(interpreter, method, arguments);
    }
  }
  interpreter.refuse(ReasonCode::expression, "a subscript");
}

namespace {

/// list[start:stop] = elements
void write_slice(Interpreter& interpreter, Sequence& list, const SliceValue& slice,
                 const std::vector<Value>& elements) {
  if (is_deque(list)) interpreter.refuse(ReasonCode::would_raise, "TypeError: a slice of a deque");
  if (list.elements.rolled() != nullptr && is_none(slice.step)) {
    auto changed =
        with_part(interpreter, list.elements.rolled(), slice.start, slice.stop, elements);
    if (changed != nullptr) {
      list.elements = ElementList(std::move(changed));
      return;
    }
  }
  SliceRange range = slice_range(interpreter, slice, list.elements.size());
  if (range.step != 1)
    interpreter.refuse(ReasonCode::expression, "assignment to a slice with a step");
  auto first = list.elements.begin() + range.start;
  auto place = list.elements.erase(first, first + std::max<Py_ssize_t>(0, range.count));
  list.elements.insert(place, elements.begin(), elements.end());
}

/// list[key] = element of a list that grew in the graph; false if the key is no position.
bool write_rolled(Interpreter& interpreter, Sequence& list, const Value& key,
                  const Value& element) {
  if (class_of(key) != &PyLong_Type) return false;
  const auto whole = list.elements.rolled();
  element_at(interpreter, *whole, key);  // there must be one
  const Value behind = position_behind(interpreter, key);
  auto changed = behind == nullptr ? nullptr
                                   : with_part(interpreter, whole, key, behind,
                                               ElementList(std::vector<Value>{element}));
  if (changed == nullptr) return false;
  list.elements = ElementList(std::move(changed));
  return true;
}

}  // namespace

namespace {

void expect_no_proxy(const Frames& frames, const Value& value) {
  const auto* dictionary = as<Dictionary>(value);
  if (dictionary != nullptr && is_proxy(*dictionary))
    raise(frames, PyExc_TypeError, "TypeError: a proxy of a dict can't be changed");
}

}  // namespace

void write_subscript(Interpreter& interpreter, const Value& value, const Value& key,
                     const Value& element) {
  const auto write = [&](const Value& container, const Value& place) {
    write_subscript(interpreter, container, place, element);
    return interpreter.none();
  };
  if (for_both(interpreter, value, key, write)) return;
  if (auto tensor = shared_as<Tensor>(value)) return write_index(interpreter, tensor, key, element);
  if (Sequence* list = changing_list(interpreter, value)) {
    if (const auto* slice = as<SliceValue>(key)) {
      write_slice(interpreter, *list, *slice, elements_of(interpreter, element));
      return note_list_change(interpreter, *list);
    }
    if (list->elements.rolled() != nullptr && write_rolled(interpreter, *list, key, element))
      return note_list_change(interpreter, *list);
    size_t index = checked_index(interpreter, *list, key);
    if (list->source != nullptr)
      interpreter.note_written(interpreter.sources().step(Source::Kind::index, list->source, {},
                                                          static_cast<Py_ssize_t>(index)),
                               element);
    list->elements[index] = element;
    return note_list_change(interpreter, *list);
  }
  if (as<Sequence>(value) != nullptr)
    interpreter.refuse(ReasonCode::would_raise, "TypeError: a tuple does not change");
  if (auto dict = real_dict(value)) return write_real_dict(interpreter, *dict, key, element);
  expect_no_proxy(interpreter, value);
  if (auto* dictionary = as<Dictionary>(value))
    return change_item(interpreter, *dictionary, key_object(interpreter, key), element);
  if (as<Known>(value) != nullptr || as<Instance>(value) != nullptr) {
    if (Value method = special_method(interpreter, value, "__setitem__")) {
      CallArguments arguments;
      arguments.positional = {key, element};
      call(interpreter, method, arguments);
      return;
    }
  }
  interpreter.refuse(ReasonCode::heap_write, "an item");
}

void delete_subscript(Interpreter& interpreter, const Value& value, const Value& key) {
  if (Sequence* list = changing_list(interpreter, value)) {
    if (const auto* slice = as<SliceValue>(key)) {
      write_slice(interpreter, *list, *slice, {});
      return note_list_change(interpreter, *list);
    }
    if (list->elements.rolled() != nullptr && take_element(interpreter, *list, key) != nullptr)
      return note_list_change(interpreter, *list);
    size_t index = checked_index(interpreter, *list, key);
    list->elements.erase(list->elements.begin() + static_cast<std::ptrdiff_t>(index));
    return note_list_change(interpreter, *list);
  }
  auto dict = real_dict(value);
  auto* dictionary = as<Dictionary>(value);
  expect_no_proxy(interpreter, value);
  if (dict || dictionary != nullptr) {
    if (!contains(interpreter, value, key)) {
      if (is_counter(class_of(value))) return;
      raise(interpreter, PyExc_KeyError, "KeyError");
    }
    if (dict) return write_real_dict(interpreter, *dict, key, nullptr);
    return change_item(interpreter, *dictionary, key_object(interpreter, key), nullptr);
  }
  if (as<Known>(value) != nullptr || as<Instance>(value) != nullptr) {
    if (Value method = special_method(interpreter, value, "__delitem__")) {
      CallArguments arguments;
      arguments.positional = {key};
      call(interpreter, method, arguments);
      return;
    }
  }
  interpreter.refuse(ReasonCode::statement, "del of an item");
}

}  // namespace janus::frontend
