// An iterator is a function that gives the next element; a container that is changed in between is
// noticed as Python notices it.
#include "frontend/objects/iteration.h"

#include <algorithm>

#include "frontend/control/outcomes.h"
#include "frontend/core/exception_values.h"
#include "frontend/core/object_kinds.h"
#include "frontend/core/operations.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/dict_views.h"
#include "frontend/objects/protocol.h"
#include "frontend/objects/sets.h"
#include "frontend/tensors/tensor.h"
#include "frontend/values/make.h"
#include "ops/list.h"

namespace janus::frontend {

using python::Object;

namespace {

/// A list may grow or shrink while it is iterated, as in Python; a deque may not.
std::shared_ptr<Iterator> iterate_sequence(Interpreter& interpreter,
                                           std::shared_ptr<Sequence> sequence) {
  auto position = std::make_shared<size_t>(0);
  std::shared_ptr<std::vector<Value>> before;
  if (is_deque(*sequence) && sequence->elements.rolled() == nullptr)
    before = std::make_shared<std::vector<Value>>(sequence->elements.known());
  auto iterator = std::make_shared<Iterator>([&interpreter, sequence, position, before]() -> Value {
    if (before != nullptr && *before != sequence->elements.known())
      interpreter.refuse(ReasonCode::expression, "a deque that changes while it is iterated");
    if (*position < sequence->elements.size()) return sequence->elements[(*position)++];
    *position = SIZE_MAX;  // once at its end, it stays there
    return nullptr;
  });
  if (sequence->source == nullptr) iterator->type = &PyListIter_Type;
  return iterator;
}

/// A dict may not grow or shrink while it is iterated; overwritten values are seen. A dict that got
/// as many new keys as it lost is refused as well: what Python does then depends on its hash table.
std::shared_ptr<Iterator> iterate_dictionary(Interpreter& interpreter,
                                             std::shared_ptr<Dictionary> dictionary,
                                             const std::string& part) {
  auto keys = std::make_shared<std::vector<Object>>();
  for (const auto& [key, value] : dictionary->items) keys->push_back(key);
  auto position = std::make_shared<size_t>(0);
  return std::make_shared<Iterator>([&interpreter, dictionary, part, keys, position]() -> Value {
    const auto same = [](const Object& key, const auto& item) { return key.is(item.first.get()); };
    if (!std::equal(keys->begin(), keys->end(), dictionary->items.begin(), dictionary->items.end(),
                    same))
      interpreter.refuse(ReasonCode::would_raise,
                         "RuntimeError: dictionary changed during iteration");
    if (*position >= keys->size()) return nullptr;
    return dictionary_part(interpreter, dictionary->items[(*position)++], part);
  });
}

/// A set may not change while it is iterated.
std::shared_ptr<Iterator> iterate_set(Interpreter& interpreter, std::shared_ptr<SetValue> set) {
  auto elements = iterate_elements(set_elements(interpreter, *set));
  auto before = std::make_shared<std::vector<Value>>(set->elements);
  return std::make_shared<Iterator>([&interpreter, set, before, elements]() -> Value {
    if (*before != set->elements)
      interpreter.refuse(ReasonCode::would_raise, "RuntimeError: set changed during iteration");
    return elements->next();
  });
}

/// Iterates over an immutable object (str, range, bytes) as CPython does.
std::shared_ptr<Iterator> iterate_constant(Interpreter& interpreter, PyObject* object) {
  Object iterator = interpreter.must(PyObject_GetIter(object));
  return std::make_shared<Iterator>([&interpreter, iterator]() -> Value {
    Object element = Object::steal(PyIter_Next(iterator.get()));
    if (!element && PyErr_Occurred() != nullptr) interpreter.refuse_raised();
    return element ? interpreter.constant(element) : nullptr;
  });
}

std::shared_ptr<Iterator> iterate_tensor(Interpreter& interpreter, std::shared_ptr<Tensor> tensor) {
  const graph::Type& type = tensor->value->type;
  if (type.rank() == 0)
    interpreter.refuse(ReasonCode::would_raise, "TypeError: iteration over a 0-d tensor");
  const graph::Dim& dim = type.shape[0];
  if (!dim.is_constant())
    interpreter.refuse(ReasonCode::dynamic_value, "the number of rows of a tensor");
  int64_t count = dim.value();
  auto position = std::make_shared<int64_t>(0);
  return std::make_shared<Iterator>([&interpreter, tensor, position, count]() -> Value {
    if (*position >= count) return nullptr;
    Value element = index_tensor(interpreter, tensor, interpreter.integer((*position)++));
    auto* row = as<Tensor>(element);
    row->producer = op::unbind;  // which is what Python calls
    row->produced_by = nullptr;
    row->grad_fn_name = "UnbindBackward0";
    return element;
  });
}

/// `value` of a StopIteration: the first argument, if any; null where its arguments are not known.
Value value_of_end(Interpreter& interpreter, const Value& exception) {
  const auto* instance = as<Instance>(exception);
  const Value arguments = instance == nullptr ? nullptr : arguments_of_exception(*instance);
  if (arguments == nullptr) return nullptr;
  const std::vector<Value> values = elements_of(interpreter, arguments);
  return values.empty() ? nullptr : values.front();
}

/// Its `__next__` is called until that raises StopIteration.
std::shared_ptr<Iterator> iterate_by_next(Interpreter& interpreter, const Value& object) {
  return std::make_shared<Iterator>([&interpreter, object](Iterator& self) -> Value {
    Value end;
    const auto next = [&] {
      return call(interpreter, special_method(interpreter, object, "__next__"), {});
    };
    Value element = value_unless_raised(interpreter, PyExc_StopIteration, next, &end);
    if (end != nullptr) self.returned = value_of_end(interpreter, end);
    return element;
  });
}

/// Its `__getitem__` is asked for one position after the other until that raises IndexError.
std::shared_ptr<Iterator> iterate_by_items(Interpreter& interpreter, const Value& object) {
  auto position = std::make_shared<int64_t>(0);
  return std::make_shared<Iterator>([&interpreter, object, position]() -> Value {
    if (*position < 0) return nullptr;
    CallArguments arguments;
    arguments.positional = {interpreter.integer((*position)++)};
    const auto at_position = [&] {
      return call(interpreter, special_method(interpreter, object, "__getitem__"), arguments);
    };
    Value element = value_unless_raised(interpreter, PyExc_IndexError, at_position);
    if (element == nullptr) *position = -1;
    return element;
  });
}

/// What `__iter__` of an object gives.
std::shared_ptr<Iterator> iterate_by_methods(Interpreter& interpreter, const Value& method) {
  const Value iterator = called_iterator(interpreter, method);
  return has_written(iterator, "__next__") ? iterate_by_next(interpreter, iterator)
                                           : iterate(interpreter, iterator);
}

/// Iteration as the object's class defines it; null: it does not.
std::shared_ptr<Iterator> iterate_object(Interpreter& interpreter, const Value& object) {
  if (Value method = special_method(interpreter, object, "__iter__"))
    return iterate_by_methods(interpreter, method);
  return has_written(object, "__getitem__") ? iterate_by_items(interpreter, object) : nullptr;
}

}  // namespace

std::shared_ptr<Iterator> iterate(Interpreter& interpreter, const Value& value) {
  Value shadow = opened(interpreter, value);
  if (auto iterator = shared_as<Iterator>(shadow)) return iterator;
  if (auto sequence = shared_as<Sequence>(shadow)) {
    if (!sequence->viewed) return iterate_sequence(interpreter, sequence);
    return iterate_dictionary(interpreter, sequence->viewed, sequence->part);
  }
  if (auto dictionary = shared_as<Dictionary>(shadow))
    return iterate_dictionary(interpreter, dictionary, "keys");
  if (auto set = shared_as<SetValue>(shadow)) return iterate_set(interpreter, set);
  if (auto tensor = shared_as<Tensor>(shadow)) return iterate_tensor(interpreter, tensor);
  if (as<Instance>(shadow) != nullptr)
    if (auto iterator = iterate_object(interpreter, shadow)) return iterator;
  if (const auto* known = as<Known>(shadow)) {
    PyObject* object = known->object.get();
    if (PyType_Check(object) && is_enumeration(reinterpret_cast<PyTypeObject*>(object))) {
      interpreter.assume_identity(*known);
      std::vector<Value> members;
      for (const Object& member : python::elements(object))
        members.push_back(interpreter.wrap(
            member.get(), interpreter.sources().root(Source::Kind::constant, member)));
      return iterate_elements(std::move(members));
    }
    if (PyAnySet_CheckExact(object) && known->source != nullptr)
      interpreter.refuse(ReasonCode::dynamic_value, "the order of a set's elements");
    if (PyUnicode_CheckExact(object) || PyBytes_CheckExact(object) ||
        PyFrozenSet_CheckExact(object) || (PyRange_Check(object) && known->source == nullptr))
      return iterate_constant(interpreter, object);
    if (auto iterator = iterate_object(interpreter, shadow)) return iterator;
  }
  interpreter.refuse(ReasonCode::dynamic_value, "an iterable of a kind that is not known");
}

std::vector<Value> list_elements(Interpreter& interpreter, const Value& value) {
  Value shadow = opened(interpreter, value);
  if (const auto* sequence = as<Sequence>(shadow); sequence != nullptr && !sequence->viewed)
    return sequence->elements;
  std::shared_ptr<Iterator> iterator = iterate(interpreter, shadow);
  std::vector<Value> elements;
  while (Value element = iterator->next()) {
    elements.push_back(std::move(element));
    if (elements.size() > static_cast<size_t>(Interpreter::most_rounds()))
      interpreter.refuse(ReasonCode::limit, "a container of too many elements");
  }
  return elements;
}

void for_each_element(Interpreter& interpreter, const Value& value,
                      const std::function<void(const Value&)>& use) {
  const Value shadow = opened(interpreter, value);
  if (const auto* sequence = as<Sequence>(shadow); sequence != nullptr && !sequence->viewed) {
    const std::vector<Value> elements = sequence->elements;
    for (const Value& element : elements) use(element);
    return;
  }
  const std::shared_ptr<Iterator> iterator = iterate(interpreter, shadow);
  for (int64_t count = 0; const Value element = iterator->next(); ++count) {
    if (count > Interpreter::most_rounds())
      interpreter.refuse(ReasonCode::limit, "a container of too many elements");
    use(element);
  }
}

}  // namespace janus::frontend
