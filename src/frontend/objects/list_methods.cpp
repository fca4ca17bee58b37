// Lists whose length only the run knows are changed by operators of the graph; all others by
// moving their elements here.
#include "frontend/objects/list_methods.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "frontend/control/counted.h"
#include "frontend/control/entry_lists.h"
#include "frontend/control/list_order.h"
#include "frontend/control/list_parts.h"
#include "frontend/control/list_reductions.h"
#include "frontend/control/symbolic_lists.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/deques.h"
#include "frontend/objects/entry_containers.h"
#include "frontend/objects/folding.h"
#include "frontend/objects/iteration.h"
#include "frontend/objects/lists.h"
#include "frontend/values/constants.h"
#include "frontend/values/symbolic_list.h"
#include "ops/list.h"
#include "python/integer.h"

namespace janus::frontend {

using python::Object;

namespace {

using Arguments = CallArguments;

bool is_zero(const Value& key) {
  const auto* known = as<Known>(key);
  return known != nullptr && PyLong_CheckExact(known->object.get()) &&
         PyObject_IsTrue(known->object.get()) == 0;
}

/// Replaces elements of a list that grew in the graph; false if the bounds are none.
bool replace_part(Interpreter& interpreter, Sequence& list, const Value& start, const Value& stop,
                  const ElementList& part) {
  auto changed = with_part(interpreter, list.elements.rolled(), start, stop, part);
  if (changed == nullptr) return false;
  list.elements = ElementList(std::move(changed));
  return true;
}

/// list.insert(key, value) of a list that grew in the graph.
bool insert_rolled(Interpreter& interpreter, Sequence& list, const Value& key, const Value& value) {
  const Rolled& elements = *list.elements.rolled();
  if (is_zero(key) && (elements.front || elements.undecided)) {
    list.elements = ElementList(grown(interpreter, elements, value, true));
    return true;
  }
  return replace_part(interpreter, list, key, key, ElementList(std::vector<Value>{value}));
}

/// list.pop() and list.pop(0) of such a list; null: any other.
Value pop_rolled(Interpreter& interpreter, Sequence& list, const Value& key) {
  const auto* known = as<Known>(key);
  const bool last = known != nullptr && PyLong_CheckExact(known->object.get()) &&
                    python::int64_of(known->object.get()) == -1;
  auto pop = last || is_zero(key)
                 ? popped(interpreter, *list.elements.rolled(), !last, /*partly=*/true)
                 : std::nullopt;
  if (!pop) return take_element(interpreter, list, key);
  list.elements = ElementList(pop->rest);
  return pop->element;
}

/// Position at which an insertion lands.
size_t insertion_point(Interpreter& interpreter, const Sequence& sequence, const Value& key) {
  Py_ssize_t position = PyLong_AsSsize_t(folded(interpreter, key).get());
  if (position == -1 && PyErr_Occurred() != nullptr) interpreter.refuse_raised();
  auto length = static_cast<Py_ssize_t>(sequence.elements.size());
  if (position < 0) position = std::max<Py_ssize_t>(0, position + length);
  return static_cast<size_t>(std::min(position, length));
}

/// list.extend(values)
void extend(Interpreter& interpreter, Sequence& list, const Value& values) {
  const Value given = opened_if_varying(interpreter, values);
  if (rolled(given) != nullptr) {
    list.elements = ElementList(joined(interpreter, list.elements, as<Sequence>(given)->elements));
    return;
  }
  const TestKey test{Object::steal(PyUnicode_InternFromString("list.extend")), -1};
  if (const auto met = counted_elements(interpreter, values, -1))
    return append_counted(interpreter, test, list, *met, true);
  for_each_element(interpreter, values, [&](const Value& element) {
    append(interpreter, list, element);
    trim_deque(list, true);
    note_list_change(interpreter, list);
  });
}

/// Whether an object may say that it does not equal itself.
bool may_differ_from_itself(const Value& value) {
  if (as<Tensor>(value) != nullptr || as<Instance>(value) != nullptr) return true;
  PyObject* const object = known_object(value);
  if (object == nullptr) return false;
  return PyFloat_CheckExact(object) ? std::isnan(PyFloat_AS_DOUBLE(object))
                                    : !is_immutable_constant(object);
}

/// Whether the element is the value or equal to it: of one object, Python does not ask.
bool is_one_or_equal(Interpreter& interpreter, const Value& element, const Value& value) {
  if (element == value) return true;
  if (may_differ_from_itself(element) && may_differ_from_itself(value) &&
      identical(interpreter, element, value))
    return true;
  return holds(interpreter, element, syntax::CompareOperator::Eq, value);
}

/// The position of the value in a list of numbers of the graph, with a guard that there is one;
/// null: it is another list.
Value position_of(Interpreter& interpreter, const Sequence& list, const Value& value) {
  const Value place = position_in(interpreter, list.elements.rolled(), value);
  if (place == nullptr) return nullptr;
  const Value is_there =
      compare(interpreter, syntax::CompareOperator::GtE, place, interpreter.integer(0));
  if (!truth(interpreter, is_there, -1))
    raise(interpreter, PyExc_ValueError, "ValueError: not in the list");
  return place;
}

/// How often the value is in a list of the graph.
Value count_of(Interpreter& interpreter, const Rolled& list, const Value& value) {
  return accumulated(
      interpreter, list, interpreter.integer(0), [&](const Value& total, const Value& element) {
        const Value same = compare(interpreter, syntax::CompareOperator::Eq, element, value);
        return binary(interpreter, syntax::Operator::Add, total, same);
      });
}

Value list_append(Interpreter& inner, Sequence& self, const Arguments& arguments) {
  expect_count(inner, arguments, 1, 1);
  append(inner, self, arguments.positional[0]);
  trim_deque(self, true);
  return inner.none();
}

Value list_extend(Interpreter& inner, Sequence& self, const Arguments& arguments) {
  expect_count(inner, arguments, 1, 1);
  extend(inner, self, arguments.positional[0]);
  trim_deque(self, true);  // of what came as a whole
  return inner.none();
}

Value list_insert(Interpreter& inner, Sequence& self, const Arguments& arguments) {
  expect_count(inner, arguments, 2, 2);
  if (self.most >= 0) inner.refuse(ReasonCode::unsupported_argument, "deque.insert");
  if (self.elements.rolled() != nullptr &&
      insert_rolled(inner, self, arguments.positional[0], arguments.positional[1]))
    return inner.none();
  size_t index = insertion_point(inner, self, arguments.positional[0]);
  self.elements.insert(self.elements.begin() + static_cast<std::ptrdiff_t>(index),
                       arguments.positional[1]);
  return inner.none();
}

Value list_pop(Interpreter& inner, Sequence& self, const Arguments& arguments) {
  expect_count(inner, arguments, 0, is_deque(self) ? 0 : 1);
  Value key = arguments.positional.empty() ? inner.integer(-1) : arguments.positional[0];
  if (self.elements.rolled() != nullptr)
    if (Value element = pop_rolled(inner, self, key)) return element;
  size_t index = checked_index(inner, self, key);
  Value element = self.elements[index];
  self.elements.erase(self.elements.begin() + static_cast<std::ptrdiff_t>(index));
  return element;
}

Value list_clear(Interpreter& inner, Sequence& self, const Arguments& arguments) {
  expect_count(inner, arguments, 0, 0);
  if (const auto& list = self.elements.rolled())
    self.elements = ElementList(roll(inner, list->test, list->form, {}, list->front));
  else
    self.elements.clear();
  return inner.none();
}

Value list_reverse(Interpreter& inner, Sequence& self, const Arguments& arguments) {
  expect_count(inner, arguments, 0, 0);
  if (const auto& list = self.elements.rolled())
    self.elements = ElementList(reversed(*list));
  else
    std::reverse(self.elements.begin(), self.elements.end());
  return inner.none();
}

Value list_remove(Interpreter& inner, Sequence& self, const Arguments& arguments) {
  expect_count(inner, arguments, 1, 1);
  if (self.elements.rolled() != nullptr)
    if (Value place = position_of(inner, self, arguments.positional[0]);
        place != nullptr && take_element(inner, self, place) != nullptr)
      return inner.none();
  for (size_t i = 0; i < self.elements.size(); ++i) {
    if (!is_one_or_equal(inner, self.elements[i], arguments.positional[0])) continue;
    self.elements.erase(self.elements.begin() + static_cast<std::ptrdiff_t>(i));
    return inner.none();
  }
  raise(inner, PyExc_ValueError, "ValueError: list.remove(x): x not in list");
}

Value list_sort(Interpreter& inner, Sequence& self, const Arguments& arguments) {
  if (!arguments.positional.empty())
    inner.refuse(ReasonCode::would_raise, "TypeError: arguments of list.sort()");
  Arguments of_sorted = arguments;
  auto copy = std::make_shared<Sequence>(true);
  copy->elements = self.elements;
  of_sorted.positional = {copy};
  Value sorted = call(inner, inner.constant_borrowed(imported("builtins.sorted")), of_sorted);
  self.elements = as<Sequence>(sorted)->elements;
  return inner.none();
}

using ListMethod = Value (*)(Interpreter& inner, Sequence& self, const Arguments& arguments);

/// Null if lists have no such method that changes them.
ListMethod changing_method(const std::string& name) {
  static const std::map<std::string, ListMethod, std::less<>> methods = {
      {"append", list_append}, {"extend", list_extend}, {"insert", list_insert},
      {"pop", list_pop},       {"clear", list_clear},   {"reverse", list_reverse},
      {"remove", list_remove}, {"sort", list_sort},
  };
  const auto found = methods.find(name);
  return found == methods.end() ? nullptr : found->second;
}

Value list_method(const std::shared_ptr<Sequence>& list, const std::string& name) {
  if (const ListMethod method = changing_method(name))
    return std::make_shared<Native>(
        "list." + name, [list, method](Interpreter& inner, const Arguments& arguments) -> Value {
          Value result = method(inner, *list, arguments);
          note_list_change(inner, *list);
          return result;
        });
  if (name != "copy") return nullptr;
  return std::make_shared<Native>("list.copy",
                                  [list](Interpreter& inner, const Arguments& arguments) {
                                    expect_count(inner, arguments, 0, 0);
                                    auto copy = std::make_shared<Sequence>(true);
                                    copy->elements = list->elements;
                                    return Value(copy);
                                  });
}

/// Whether the class of the named tuple has such a field.
bool has_field(const Sequence& sequence, const std::string& name) {
  PyObject* const fields =
      sequence.type ? tuple_fields(reinterpret_cast<PyTypeObject*>(sequence.type.get())) : nullptr;
  return fields != nullptr && PySequence_Contains(fields, python::interned(name.c_str())) == 1;
}

}  // namespace

Value sequence_method(const std::shared_ptr<Sequence>& sequence, const std::string& name) {
  if (is_deque(*sequence))
    if (Value method = deque_method(sequence, name)) return method;
  if (sequence->is_list && !(is_deque(*sequence) && (name == "sort" || name == "copy")))
    if (Value method = list_method(sequence, name)) return method;
  if ((name == "index" || name == "count") && !has_field(*sequence, name))
    return std::make_shared<Native>(
        "sequence." + name,
        [sequence, counts = name == "count"](Interpreter& inner, const Arguments& arguments) {
          expect_count(inner, arguments, 1, 1);
          if (const Rolled* list = rolled(sequence);
              list != nullptr && list->form.kind == ElementForm::Kind::number) {
            if (counts) return count_of(inner, *list, arguments.positional[0]);
            if (Value place = position_of(inner, *sequence, arguments.positional[0])) return place;
          }
          int64_t found = 0;
          for (size_t i = 0; i < sequence->elements.size(); ++i) {
            if (!is_one_or_equal(inner, sequence->elements[i], arguments.positional[0])) continue;
            if (!counts) return inner.integer(static_cast<int64_t>(i));
            ++found;
          }
          if (!counts) raise(inner, PyExc_ValueError, "ValueError: not in the sequence");
          return inner.integer(found);
        });
  if (name == "numel" && sequence->type.is(reinterpret_cast<PyObject*>(size_class())))
    return std::make_shared<Native>("Size.numel", [sequence](Interpreter& inner, const Arguments&) {
      Value product = inner.integer(1);
      for (const Value& element : sequence->elements)
        product = binary(inner, syntax::Operator::Mult, product, element);
      return product;
    });
  return nullptr;
}

Value grow_list(Interpreter& interpreter, const Known& known, const Value& element) {
  Heap::List& list = interpreter.heap.list_of(known.object.get(), known.source);
  if (PyList_Check(known.object.get())) note_length(interpreter, known.source);
  append(interpreter, list.shadow != nullptr ? *list.shadow : *list.appended, element);
  if (list.shadow != nullptr) trim_deque(*list.shadow, true);
  interpreter.heap.note_change();
  interpreter.mark(speculate::LineMark::Kind::effect);
  return interpreter.none();
}

}  // namespace janus::frontend
