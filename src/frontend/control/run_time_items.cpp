#include "frontend/control/run_time_items.h"

#include <algorithm>

#include "base/policy.h"
#include "frontend/control/entry_lists.h"
#include "frontend/control/run_time_reads.h"
#include "frontend/control/slice_positions.h"
#include "frontend/core/interpreter.h"
#include "frontend/core/operations.h"
#include "frontend/core/run_time_objects.h"
#include "frontend/core/torch_objects.h"
#include "frontend/values/class_sets.h"
#include "frontend/values/number_kinds.h"
#include "ops/list.h"
#include "python/integer.h"

namespace janus::frontend {

using graph::Type;
using python::Object;
using speculate::ValueFact;

// --- lists and tuples ---------------------------------------------------------------------------

namespace {

/// The outcome of a test of an object. What the call at hand hands over is followed: so it is known
/// that a recursion recurs at least once, which decides about what has a gradient for certain.
Value outcome(Interpreter& interpreter, const RuntimeObject& object, graph::Value* flag,
              bool (*holds)(PyObject*)) {
  if (!object.example) return interpreter.number(flag);
  const Object example = Object::borrow(holds(object.example.get()) ? Py_True : Py_False);
  return interpreter.boolean(interpreter.follow(flag, example, -1));
}

bool is_list_or_tuple(PyTypeObject* type) { return type == &PyList_Type || type == &PyTuple_Type; }

void expect_sequence(Interpreter& interpreter, const RuntimeObject& object, int fact) {
  const Classes classes = expect_classes(interpreter, object, fact);
  check_unchanged(interpreter, classes);
  for (const Object& each : classes)
    if (!is_list_or_tuple(as_type(each)))
      interpreter.refuse(ReasonCode::expression, cat("the elements of a ", as_type(each)->tp_name));
}

graph::Value* read_length(Interpreter& interpreter, const RuntimeObject& object, int fact) {
  expect_sequence(interpreter, object, fact);
  graph::Node* node = interpreter.builder().append_unchecked(
      op::object_length, std::vector<graph::Value*>{object.value}, may_fail(interpreter, fact),
      {Type::i64()});
  return node->output();
}

/// Whether it is longer than 0: followed for what the call at hand hands over.
Value has_elements(Interpreter& interpreter, const RuntimeObject& object, graph::Value* length) {
  graph::Value* flag =
      interpreter.graph_value(compare(interpreter, syntax::CompareOperator::Gt,
                                      interpreter.number(length), interpreter.integer(0)));
  return outcome(interpreter, object, flag, [](PyObject* example) {
    return is_list_or_tuple(Py_TYPE(example)) && PySequence_Fast_GET_SIZE(example) > 0;
  });
}

}  // namespace

Value run_time_length(Interpreter& interpreter, const RuntimeObject& object, int fact) {
  Object example;
  if (object.example && is_list_or_tuple(Py_TYPE(object.example.get())))
    example = interpreter.must(PyLong_FromSsize_t(PySequence_Fast_GET_SIZE(object.example.get())));
  return interpreter.number(read_length(interpreter, object, fact), std::move(example));
}

Value run_time_item(Interpreter& interpreter, const RuntimeObject& object, const Value& position,
                    const ValueFact* seen, int fact) {
  const Classes classes = expect_classes(interpreter, object, fact);
  if (are_dicts(classes)) {
    check_unchanged(interpreter, classes);
    return dict_item(interpreter, object, position, seen, fact);
  }
  expect_sequence(interpreter, object, fact);
  if (!is_number(position))
    interpreter.refuse(ReasonCode::expression, "an index of a list met at run time");
  graph::Value* at = interpreter.graph_value(position);
  if (at->type.kind != Type::Kind::i64)
    interpreter.refuse(ReasonCode::expression, "an index of a list met at run time");
  graph::Node* node = interpreter.builder().append_unchecked(
      op::object_item, std::vector<graph::Value*>{object.value, at}, may_fail(interpreter, fact),
      {type_seen(seen)});
  return read_value(interpreter, node->output(), seen);
}

namespace {

/// Whether objects of the class hold data and do nothing: they are no modules and no functions.
bool is_class_of_data(const Object& object) {
  const PyTypeObject* type = as_type(object);
  return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 && type->tp_call == nullptr &&
         !PyType_IsSubtype(as_type(object), tensor_class());
}

/// Whether the elements, as far as one looks, are tuples of the same parts: tensors of one form and
/// numbers of one class, as the samples of a data set.
bool are_tuples_of_one_form(PyObject* list) {
  std::vector<ValueFact> parts;
  for (Py_ssize_t i = 0;
       i < std::min(policy::kMostElementsExamined, PySequence_Fast_GET_SIZE(list)); ++i) {
    PyObject* const element = PySequence_Fast_GET_ITEM(list, i);
    if (!PyTuple_CheckExact(element)) return false;
    const auto count = static_cast<size_t>(PyTuple_GET_SIZE(element));
    if (i == 0) parts.resize(count);
    if (count != parts.size()) return false;
    for (size_t k = 0; k < count; ++k)
      parts[k].see(PyTuple_GET_ITEM(element, static_cast<Py_ssize_t>(k)));
  }
  return std::ranges::none_of(
      parts, [](const ValueFact& part) { return type_seen(&part) == Type::object("object"); });
}

/// Whether the run can take whichever element comes.
bool are_interchangeable(PyObject* list, const ValueFact& seen) {
  if (type_seen(&seen).is_tensor()) return true;
  if (type_seen(&seen).is_number())
    return PySequence_Fast_GET_SIZE(list) > policy::kMostNumbersAsInputs;
  if (seen.classes().empty()) return false;
  if (seen.classes().front().is(reinterpret_cast<PyObject*>(&PyTuple_Type)))
    return are_tuples_of_one_form(list);
  return std::ranges::all_of(seen.classes(), is_class_of_data);
}

/// The element that the call at hand takes; null if that is not known.
Object element_at_hand(PyObject* list, const Number& position) {
  if (!position.example || !PyLong_Check(position.example.get())) return {};
  const Py_ssize_t index = PyLong_AsSsize_t(position.example.get());
  PyErr_Clear();
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(list);
  if (index < -size || index >= size) return {};
  return Object::borrow(PySequence_Fast_GET_ITEM(list, index < 0 ? index + size : index));
}

}  // namespace

namespace {

/// The list or tuple that existed before the call as an object of the run, which reads elements of
/// it wherever they stand; null if they can't take each other's place. `seen`: what elements were.
std::shared_ptr<RuntimeObject> chosen_from(Interpreter& interpreter, const Known& list,
                                           const ValueFact& seen) {
  if (list.source == nullptr || !is_list_or_tuple(Py_TYPE(list.object.get())) ||
      PySequence_Fast_GET_SIZE(list.object.get()) <= policy::kMostElementsWithGraphs ||
      interpreter.heap.list(list.object.get(), list.source) != nullptr ||
      interpreter.followed(entry_list_test(list.source)) != nullptr ||
      !are_interchangeable(list.object.get(), seen))
    return nullptr;
  Value& all = interpreter.chosen_from[list.source];
  if (all == nullptr) all = interpreter.wrap_run_time(list.object.get(), list.source);
  return shared_as<RuntimeObject>(all);
}

Value chosen_item(Interpreter& interpreter, const Known& list, const RuntimeObject& all,
                  const Value& position, const ValueFact& seen, int fact) {
  Value item = run_time_item(interpreter, all, position, &seen, fact);
  const auto* number = as<Number>(position);
  if (auto* object = as<RuntimeObject>(item); object != nullptr && number != nullptr)
    object->example = element_at_hand(list.object.get(), *number);
  return item;
}

bool is_int_of_the_run(const Value& value) {
  const auto* number = as<Number>(value);
  return number != nullptr && number->type == Type::Kind::i64;
}

}  // namespace

Value varying_item(Interpreter& interpreter, const Known& list, const Value& position, int fact) {
  const speculate::NodeFact* node = interpreter.fact(fact);
  if (!is_int_of_the_run(position) || node == nullptr) return nullptr;
  const auto all = chosen_from(interpreter, list, node->value);
  if (all == nullptr) return nullptr;
  return chosen_item(interpreter, list, *all, position, node->value, fact);
}

namespace {

/// What the elements of the list are, as far as one looks.
ValueFact elements_seen(PyObject* list) {
  ValueFact seen;
  for (Py_ssize_t i = 0;
       i < std::min(policy::kMostElementsExamined, PySequence_Fast_GET_SIZE(list)); ++i)
    seen.see(PySequence_Fast_GET_ITEM(list, i));
  return seen;
}

}  // namespace

Value varying_part(Interpreter& interpreter, const Known& list, const Value& key, int fact) {
  const auto* slice = as<SliceValue>(key);
  if (slice == nullptr || !is_none(slice->step) ||
      (!is_int_of_the_run(slice->start) && !is_int_of_the_run(slice->stop)) ||
      list.source == nullptr || !is_list_or_tuple(Py_TYPE(list.object.get())))
    return nullptr;
  const ValueFact seen = elements_seen(list.object.get());
  const auto all = chosen_from(interpreter, list, seen);
  if (all == nullptr) return nullptr;
  const auto positions =
      slice_positions(interpreter, *slice, run_time_length(interpreter, *all, fact));
  if (!positions || positions->size() > policy::kLongestVaryingSlice)
    interpreter.refuse(ReasonCode::dynamic_value, "the number of elements of a slice");
  auto part = std::make_shared<Sequence>(PyList_CheckExact(list.object.get()));
  for (const Value& position : *positions)
    part->elements.push_back(chosen_item(interpreter, list, *all, position, seen, fact));
  return part;
}

std::function<Value(const Value& position)> varying_elements(Interpreter& interpreter,
                                                             const Known& list) {
  if (list.source == nullptr || !is_list_or_tuple(Py_TYPE(list.object.get()))) return nullptr;
  const ValueFact seen = elements_seen(list.object.get());
  const auto all = chosen_from(interpreter, list, seen);
  if (all == nullptr) return nullptr;
  interpreter.assume(Assumption::Kind::length, list.source, {},
                     PySequence_Fast_GET_SIZE(list.object.get()));
  return
      [&interpreter, list = list.object, source = list.source, all, seen](const Value& position) {
        return chosen_item(interpreter, Known(list, source), *all, position, seen, -1);
      };
}

namespace {

/// An element that the run might have chosen in place of the object; null if it chose none.
Object another_choice(const Lifting& lifting, const RuntimeObject& object) {
  const graph::Node* read = object.value->definition;
  if (read == nullptr || read->op != &op::object_item) return {};
  for (const auto& [source, list] : lifting.chosen_from) {
    const auto& all = *as<RuntimeObject>(list);
    if (all.value == read->inputs[0] && PySequence_Fast_GET_SIZE(all.example.get()) > 0)
      return Object::borrow(PySequence_Fast_GET_ITEM(all.example.get(), 0));
  }
  return {};
}

}  // namespace

std::vector<Value> run_time_elements(Interpreter& interpreter, const RuntimeObject& object,
                                     size_t count) {
  const Value length = run_time_length(interpreter, object, -1);
  const auto size = static_cast<int64_t>(count);
  const Value fits =
      compare(interpreter, syntax::CompareOperator::Eq, length, interpreter.integer(size));
  if (as<Known>(fits) == nullptr) interpreter.guard_kinds(interpreter.graph_value(fits), -1);
  const Object like = object.example ? object.example : another_choice(interpreter, object);
  PyObject* const example = like.get();
  const bool has_example = example != nullptr && is_list_or_tuple(Py_TYPE(example)) &&
                           PySequence_Fast_GET_SIZE(example) == size;
  std::vector<Value> elements;
  for (int64_t i = 0; i < size; ++i) {
    ValueFact seen;
    if (has_example) seen.see(PySequence_Fast_GET_ITEM(example, i));
    for (const Object& each : expect_classes(interpreter, object, -1))
      look_at_samples(as_type(each), i, size, seen, interpreter.call());
    elements.push_back(run_time_item(interpreter, object, interpreter.integer(i), &seen, -1));
  }
  return elements;
}

Value run_time_contains(Interpreter& interpreter, const RuntimeObject& object, const Value& key) {
  const Classes classes = expect_classes(interpreter, object, -1);
  check_unchanged(interpreter, classes);
  if (!are_dicts(classes))
    interpreter.refuse(ReasonCode::expression, "whether something is in an object met at run time");
  return interpreter.number(has_item(interpreter, object, key));
}

Value run_time_number(Interpreter& interpreter, const Value& value) {
  const auto* object = as<RuntimeObject>(value);
  if (object == nullptr) return value;
  auto [classes, is_certain] = classes_here(interpreter, *object);
  if (!is_certain || classes.size() != 1) return value;
  const Type type = number_type(as_type(classes.front()));
  if (!type.is_number()) return value;
  return interpreter.number(interpreter.builder()
                                .append_unchecked(op::object_value,
                                                  std::vector<graph::Value*>{object->value},
                                                  may_fail(interpreter, -1), {type})
                                ->output());
}

// --- identity and truth -------------------------------------------------------------------------

namespace {

/// Whether the object is None: decides the class either way, so nothing else has to be known.
Value is_none(Interpreter& interpreter, const RuntimeObject& object) {
  auto [classes, is_certain] = classes_here(interpreter, object);
  const auto none = Object::borrow(reinterpret_cast<PyObject*>(Py_TYPE(Py_None)));
  if (is_certain && !has_class(classes, as_type(none))) return interpreter.boolean(false);
  if (is_certain && classes.size() == 1) return interpreter.boolean(true);
  ClassTest test;
  test.object = object.value;
  test.yes = {none};
  for (const Object& each : classes)
    if (!each.is(none.get())) test.no.push_back(each);
  test.no_is_certain = is_certain;
  graph::Value* flag = class_flag(interpreter, object, as_type(none));
  interpreter.class_tests[flag] = std::move(test);
  return outcome(interpreter, object, flag, [](PyObject* example) { return example == Py_None; });
}

}  // namespace

Value run_time_identity(Interpreter& interpreter, const Value& left, const Value& right) {
  if (left == right) return interpreter.boolean(true);
  const auto *a = as<RuntimeObject>(left), *b = as<RuntimeObject>(right);
  if (a != nullptr && is_none(right)) return is_none(interpreter, *a);
  if (b != nullptr && is_none(left)) return is_none(interpreter, *b);
  graph::Value* first = object_value(interpreter, left);
  graph::Value* second = object_value(interpreter, right);
  if (first == nullptr || second == nullptr)
    interpreter.refuse(ReasonCode::expression, "the identity of such objects");
  return interpreter.number(op::object_is(interpreter.builder(), {first, second}));
}

Value run_time_equality(Interpreter& interpreter, const RuntimeObject& object,
                        const Value& constant) {
  const auto* known = as<Known>(constant);
  if (known == nullptr) return nullptr;
  PyTypeObject* type = Py_TYPE(known->object.get());
  if (type != &PyUnicode_Type && type != &PyLong_Type) return nullptr;
  // An int equals floats and flags too, a text only texts.
  for (const Object& each : expect_classes(interpreter, object, -1))
    if (as_type(each) != &PyUnicode_Type && as_type(each) != &PyLong_Type &&
        as_type(each) != Py_TYPE(Py_None))
      return nullptr;
  return interpreter.number(
      op::object_equals_constant(interpreter.builder(), {object.value},
                                 {{"object", number_of(interpreter, known->object.get())}}));
}

Value run_time_truth(Interpreter& interpreter, const RuntimeObject& object) {
  auto [classes, is_certain] = classes_here(interpreter, object);
  const auto is_sequence = [](const Object& type) { return is_list_or_tuple(as_type(type)); };
  if (!classes.empty() && std::all_of(classes.begin(), classes.end(), is_sequence))
    return has_elements(interpreter, object, read_length(interpreter, object, -1));
  for (const Object& each : classes) {
    const PyTypeObject* type = as_type(each);
    bool decides = (type->tp_as_number != nullptr && type->tp_as_number->nb_bool != nullptr) ||
                   (type->tp_as_mapping != nullptr && type->tp_as_mapping->mp_length != nullptr) ||
                   (type->tp_as_sequence != nullptr && type->tp_as_sequence->sq_length != nullptr);
    if (decides && !each.is(reinterpret_cast<PyObject*>(Py_TYPE(Py_None))))
      interpreter.refuse(ReasonCode::dynamic_value, cat("the truth of a ", type->tp_name));
  }
  expect_classes(interpreter, object, -1);
  Value none = is_none(interpreter, object);
  if (const auto* known = as<Known>(none)) return interpreter.boolean(known->object.is(Py_False));
  return interpreter.number(interpreter.negated_flag(interpreter.graph_value(none)));
}

}  // namespace janus::frontend
