// Containers as the function sees them: those it makes itself are kept as their parts; those of the
// real world are opened into such twins, with guards. What is written to those goes to the heap's
// overlay (heap.h); what does not depend on what they hold does not open them.
#include "frontend/objects/containers.h"

#include <algorithm>
#include <set>

#include "frontend/control/entry_lists.h"
#include "frontend/control/rolled.h"
#include "frontend/core/exceptions.h"
#include "frontend/objects/attributes.h"
#include "frontend/objects/container_parts.h"
#include "frontend/objects/dict_views.h"
#include "frontend/objects/protocol.h"
#include "frontend/tensors/tensor.h"
#include "ops/list.h"
#include "python/dict_keys.h"
#include "frontend/values/constants.h"
#include "frontend/values/rolled_list.h"
#include "frontend/values/make.h"
#include "frontend/core/torch_objects.h"
#include "frontend/core/class_of.h"
#include "frontend/core/settled.h"
#include "frontend/core/keys.h"
#include "frontend/control/outcomes.h"
#include "frontend/core/operations.h"
#include "frontend/control/run_time_items.h"
#include "frontend/core/object_kinds.h"

namespace janus::frontend {

using python::Object;

void expect_count(Interpreter& interpreter, const CallArguments& arguments, size_t least,
                  size_t most) {
  if (arguments.positional.size() < least || arguments.positional.size() > most ||
      !arguments.keywords.empty())
    interpreter.refuse(ReasonCode::unsupported_argument, "arguments of a container's method");
}

const Source* length_path(Interpreter& interpreter, const Source* source) {
  return interpreter.sources().step(Source::Kind::length, source);
}

void note_length(Interpreter& interpreter, const Source* source) {
  interpreter.note_written(length_path(interpreter, source), interpreter.integer(-1));
}

PyObject* tuple_fields(PyTypeObject* type) {
  if (PyType_IsSubtype(type, &PyTuple_Type) == 0) return nullptr;
  for (const char* method : {"__iter__", "__len__", "__getitem__", "__contains__", "__eq__",
                             "__lt__", "__add__", "__hash__", "__init__"}) {
    const Object name = Object::steal(PyUnicode_InternFromString(method));
    if (_PyType_Lookup(type, name.get()) != _PyType_Lookup(&PyTuple_Type, name.get()))
      return nullptr;
  }
  static PyObject* const name = PyUnicode_InternFromString("_fields");
  PyObject* fields = _PyType_Lookup(type, name);
  return fields != nullptr && PyTuple_Check(fields) ? fields : nullptr;
}

// --- opening ------------------------------------------------------------------------------------

bool is_tuple_like(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  return PyTuple_CheckExact(object) || type == size_class() || tuple_fields(type) != nullptr;
}

Value part_at_entry(Interpreter& interpreter, PyObject* object, const Known& known,
                    Source::Kind kind, const Object& key, Py_ssize_t index) {
  const Source* source = known.source == nullptr
                             ? nullptr
                             : interpreter.sources().step(kind, known.source, key, index);
  return interpreter.wrap(object, source);
}

Value dict_part(Interpreter& interpreter, PyObject* object, const Known& known, const Object& key) {
  const Source* source = known.source;
  bool attributes = source != nullptr && source->kind == Source::Kind::attribute &&
                    PyUnicode_CheckExact(key.get()) && text_of(source->key.get()) == "__dict__";
  if (attributes)
    return interpreter.wrap(
        object, interpreter.sources().step(Source::Kind::instance_value, source->base, key));
  return part_at_entry(interpreter, object, known, Source::Kind::item, key, 0);
}

void note_moving(Interpreter& interpreter, const Source* source, PyObject* element) {
  if (!PyFloat_CheckExact(element) && !PyLong_CheckExact(element)) return;
  interpreter.note_written(
      source, PyFloat_CheckExact(element)
                  ? interpreter.constant(python::check(
                        PyFloat_FromDouble(PyFloat_AS_DOUBLE(element) == 0 ? 1.0 : 0.0)))
                  : interpreter.integer(PyObject_IsTrue(element) == 0 ? 1 : 0));
}

namespace {

/// The elements of a deque as they were at the entry, with guards. While it is being filled, each
/// call finds another length: there is no graph for each.
void deque_at_entry(Interpreter& interpreter, const Known& known, Sequence& sequence) {
  PyObject* object = known.object.get();
  const Py_ssize_t length = PyObject_Size(object);
  const Object most = interpreter.must(PyObject_GetAttrString(object, "maxlen"));
  const Object name = Object::steal(PyUnicode_InternFromString("maxlen"));
  interpreter.assume(Assumption::Kind::equals,
                     interpreter.sources().step(Source::Kind::attribute, known.source, name), most);
  if (!most.is(Py_None)) sequence.most = PyLong_AsSsize_t(most.get());
  if (sequence.most > length)
    interpreter.refuse(ReasonCode::dynamic_value, "the length of a deque that is not full");
  interpreter.assume(Assumption::Kind::length, known.source, {}, length);
  for (Py_ssize_t i = 0; i < length; ++i) {
    const Object element = interpreter.must(PySequence_GetItem(object, i));
    const Source* source = interpreter.sources().step(Source::Kind::index, known.source, {}, i);
    sequence.elements.push_back(interpreter.wrap(element.get(), source));
    note_moving(interpreter, source, element.get());
  }
}

/// The elements of a list or tuple as they were at the entry, with guards.
std::shared_ptr<Sequence> elements_at_entry(Interpreter& interpreter, const Known& known) {
  PyObject* object = known.object.get();
  auto sequence = std::make_shared<Sequence>(PyList_Check(object) || is_deque(object));
  if ((PyTuple_Check(object) && !PyTuple_CheckExact(object)) || is_deque(object))
    sequence->type = Object::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  sequence->source = known.source;
  if (auto elements = varying_list(interpreter, known)) {
    sequence->elements = ElementList(std::move(elements));
    return sequence;
  }
  const Py_ssize_t length = PyObject_Size(object);
  if (length > Interpreter::most_rounds())
    interpreter.refuse(ReasonCode::limit, cat("a container of ", length, " elements"));
  if (is_deque(object)) {
    deque_at_entry(interpreter, known, *sequence);
    return sequence;
  }
  if (!is_immutable_constant(object))
    interpreter.assume(Assumption::Kind::length, known.source, {}, length);
  for (Py_ssize_t i = 0; i < length; ++i) {
    PyObject* element = PySequence_Fast_GET_ITEM(object, i);
    sequence->elements.push_back(
        is_immutable_constant(object)
            ? interpreter.constant_borrowed(element)
            : part_at_entry(interpreter, element, known, Source::Kind::index, {}, i));
  }
  return sequence;
}

/// What is read by one path was assumed of another: both must lead to the same container again.
void assume_same(Interpreter& interpreter, const Source* path, const Source* twin) {
  if (path == twin || path == nullptr || twin == nullptr) return;
  Assumption same;
  same.kind = Assumption::Kind::same_object;
  same.source = path;
  same.other = twin;
  interpreter.assume(std::move(same));
}

}  // namespace

/// A list has one twin for the whole run, which takes its changes.
Value open_sequence(Interpreter& interpreter, const Known& known) {
  PyObject* object = known.object.get();
  if ((!PyList_CheckExact(object) && !is_deque(object)) || known.source == nullptr)
    return elements_at_entry(interpreter, known);
  if (const Heap::List* open = interpreter.heap.list(object, known.source); open && open->twin) {
    assume_same(interpreter, known.source, open->twin->source);
    return open->twin;
  }
  auto twin = elements_at_entry(interpreter, known);
  Heap::List& list = interpreter.heap.list_of(object, known.source);
  list.at_entry = twin->elements;
  if (const std::vector<Value>& appended = list.appended->elements; !appended.empty()) {
    twin->elements.insert(twin->elements.end(), appended.begin(), appended.end());
    list.appended->elements.clear();
    trim_deque(*twin, true);
  }
  list.twin = twin;
  return twin;
}

namespace {

void open_items(Interpreter& interpreter, const Known& known, Dictionary& dictionary) {
  PyObject* object = known.object.get();
  const std::vector<Object> keys = python::keys_in_order(object);
  const Object assumed = interpreter.must(PyTuple_New(static_cast<Py_ssize_t>(keys.size())));
  for (size_t i = 0; i < keys.size(); ++i)
    PyTuple_SET_ITEM(assumed.get(), static_cast<Py_ssize_t>(i), Object(keys[i]).release());
  interpreter.assume(Assumption::Kind::keys, known.source, assumed);
  for (const Object& key : keys) {
    PyObject* element = PyDict_GetItemWithError(object, key.get());
    if (element == nullptr) interpreter.refuse_raised();
    dictionary.items.emplace_back(key, dict_part(interpreter, element, known, key));
  }
}

/// A dict has one twin as well; the heap's table keeps what was changed.
Value open_dict(Interpreter& interpreter, const Known& known) {
  PyObject* object = known.object.get();
  Heap& heap = interpreter.heap;
  if (Heap::Table* open = heap.table(object); open != nullptr && open->twin) {
    open->paths.insert(known.source);
    assume_same(interpreter, known.source, open->twin->source);
    return open->twin;
  }
  auto dictionary = std::make_shared<Dictionary>();
  dictionary->source = known.source;
  dictionary->object = known.object;
  if (!PyDict_CheckExact(object))
    dictionary->type = Object::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  if (!heap.cleared(object)) open_items(interpreter, known, *dictionary);
  if (known.source == nullptr) return dictionary;
  Heap::Table& table = heap.table_of(interpreter.dict_target(object, known.source));
  for (const Heap::Change& change : table.changes)
    change_item(interpreter, *dictionary, change.key, change.held.value_or_null());
  table.twin = dictionary;
  return dictionary;
}

}  // namespace

Value open_container(Interpreter& interpreter, const Value& value) {
  expect_settled(value);
  const auto* known = as<Known>(value);
  if (known == nullptr) return value;
  PyObject* object = known->object.get();
  if (PyList_CheckExact(object) || is_tuple_like(object) ||
      (is_deque(object) && known->source != nullptr))
    return open_sequence(interpreter, *known);
  if (is_plain_dict(object)) return open_dict(interpreter, *known);
  return value;
}

// --- iteration ----------------------------------------------------------------------------------

namespace {

/// A list may grow or shrink while it is iterated, as in Python.
std::shared_ptr<Iterator> iterate_sequence(std::shared_ptr<Sequence> sequence) {
  auto position = std::make_shared<size_t>(0);
  auto iterator = std::make_shared<Iterator>([sequence, position]() -> Value {
    return *position < sequence->elements.size() ? sequence->elements[(*position)++] : nullptr;
  });
  if (sequence->source == nullptr) iterator->type = &PyListIter_Type;
  return iterator;
}

/// A dict may not grow or shrink while it is iterated; values that are overwritten are seen. That
/// other keys came for as many that went is refused as well: what Python makes of it depends on its
/// tables.
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
    row->producer = "unbind";  // which is what Python calls
    row->produced_by = nullptr;
    row->grad_fn_name = "UnbindBackward0";
    return element;
  });
}

/// What the method gives; null where it raises that exception.
Value call_unless_it_raises(Interpreter& interpreter, const Value& method,
                            const CallArguments& arguments, PyObject* exception) {
  return value_unless_raised(interpreter, exception,
                             [&] { return call(interpreter, method, arguments); });
}

/// Its `__next__` is called until that raises StopIteration.
std::shared_ptr<Iterator> iterate_by_next(Interpreter& interpreter, const Value& object) {
  return std::make_shared<Iterator>([&interpreter, object]() -> Value {
    return call_unless_it_raises(interpreter, special_method(interpreter, object, "__next__"), {},
                                 PyExc_StopIteration);
  });
}

/// Its `__getitem__` is asked for one position after the other until that raises IndexError.
std::shared_ptr<Iterator> iterate_by_items(Interpreter& interpreter, const Value& object) {
  auto position = std::make_shared<int64_t>(0);
  return std::make_shared<Iterator>([&interpreter, object, position]() -> Value {
    if (*position < 0) return nullptr;
    CallArguments arguments;
    arguments.positional = {interpreter.integer((*position)++)};
    Value element =
        call_unless_it_raises(interpreter, special_method(interpreter, object, "__getitem__"),
                              arguments, PyExc_IndexError);
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

/// What the class of an object says of iteration; null: nothing.
std::shared_ptr<Iterator> iterate_object(Interpreter& interpreter, const Value& object) {
  if (Value method = special_method(interpreter, object, "__iter__"))
    return iterate_by_methods(interpreter, method);
  return has_written(object, "__getitem__") ? iterate_by_items(interpreter, object) : nullptr;
}

}  // namespace

std::shared_ptr<Iterator> iterate(Interpreter& interpreter, const Value& value) {
  Value twin = opened(interpreter, value);
  if (auto iterator = shared_as<Iterator>(twin)) return iterator;
  if (auto sequence = shared_as<Sequence>(twin)) {
    if (!sequence->viewed) return iterate_sequence(sequence);
    return iterate_dictionary(interpreter, sequence->viewed, sequence->part);
  }
  if (auto dictionary = shared_as<Dictionary>(twin))
    return iterate_dictionary(interpreter, dictionary, "keys");
  if (auto set = shared_as<SetValue>(twin)) return iterate_set(interpreter, set);
  if (auto tensor = shared_as<Tensor>(twin)) return iterate_tensor(interpreter, tensor);
  if (as<Instance>(twin) != nullptr)
    if (auto iterator = iterate_object(interpreter, twin)) return iterator;
  if (const auto* known = as<Known>(twin)) {
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
    if (auto iterator = iterate_object(interpreter, twin)) return iterator;
  }
  interpreter.refuse(ReasonCode::dynamic_value, "what is iterated over");
}

std::vector<Value> list_elements(Interpreter& interpreter, const Value& value) {
  Value twin = opened(interpreter, value);
  if (const auto* sequence = as<Sequence>(twin); sequence != nullptr && !sequence->viewed)
    return sequence->elements;
  std::shared_ptr<Iterator> iterator = iterate(interpreter, twin);
  std::vector<Value> elements;
  while (Value element = iterator->next()) {
    elements.push_back(std::move(element));
    if (elements.size() > static_cast<size_t>(Interpreter::most_rounds()))
      interpreter.refuse(ReasonCode::limit, "a container of too many elements");
  }
  return elements;
}

namespace {

Value length_at_entry(Interpreter& interpreter, const Known& known) {
  Object length = interpreter.must(PyLong_FromSsize_t(PyObject_Size(known.object.get())));
  return interpreter.wrap(length.get(), length_path(interpreter, known.source));
}

}  // namespace

std::optional<bool> container_truth(Interpreter& interpreter, const Value& value) {
  const auto* known = as<Known>(value);
  if (known == nullptr || known->source == nullptr) return std::nullopt;
  PyObject* object = known->object.get();
  if (!PyList_CheckExact(object) && !is_plain_dict(object)) return std::nullopt;
  if (const Heap::List* list = interpreter.heap.list(object, known->source)) {
    if (list->twin != nullptr && list->twin->elements != list->at_entry)
      return !list->twin->elements.empty();
    if (!list->appended->elements.empty()) return true;
  }
  if (interpreter.heap.table(object) != nullptr)
    return !as<Dictionary>(opened(interpreter, value))->items.empty();
  bool filled = PyObject_Size(object) > 0;
  interpreter.assume(Assumption::Kind::truth, known->source, {}, filled ? 1 : 0);
  return filled;
}

Value length_of(Interpreter& interpreter, const Value& value) {
  auto count = [&](size_t n) { return interpreter.integer(static_cast<int64_t>(n)); };
  if (const Rolled* list = rolled(value)) return length_of(interpreter, *list);
  if (const auto* sequence = as<Sequence>(value))
    return count(sequence->viewed ? sequence->viewed->items.size() : sequence->elements.size());
  if (const auto* dictionary = as<Dictionary>(value)) return count(dictionary->items.size());
  if (const auto* set = as<SetValue>(value)) return count(set->elements.size());
  if (const auto* tensor = as<Tensor>(value)) {
    if (tensor->value->type.rank() == 0)
      interpreter.refuse(ReasonCode::would_raise, "TypeError: len() of a 0-d tensor");
    return interpreter.dimension(tensor->value->type.shape[0]);
  }
  if (const auto* object = as<RuntimeObject>(value))
    return run_time_length(interpreter, *object, -1);
  if (as<Instance>(value) != nullptr)
    if (Value method = special_method(interpreter, value, "__len__"))
      return called_length(interpreter, method);
  if (has_written(value, "__len__"))
    return called_length(interpreter, special_method(interpreter, value, "__len__"));
  if (const auto* known = as<Known>(value)) {
    PyObject* object = known->object.get();
    bool builtin = PyList_CheckExact(object) || PyTuple_Check(object) || PyDict_Check(object) ||
                   PyAnySet_CheckExact(object);
    if (PySet_CheckExact(object) && known->source != nullptr)
      return interpreter.integer(set_length(interpreter, *known));
    if ((is_deque(object) && known->source != nullptr) || varying_list(interpreter, *known))
      return length_of(interpreter, opened(interpreter, value));
    const Heap::List* list = interpreter.heap.list(object, known->source);
    if (list != nullptr && list->twin == nullptr && PyList_CheckExact(object)) {
      Value before = length_at_entry(interpreter, *known);
      note_length(interpreter, known->source);
      return binary(interpreter, syntax::Operator::Add, before,
                    length_of(interpreter, Value(list->appended)));
    }
    if (list != nullptr || interpreter.heap.table(object) != nullptr)
      if (Value twin = opened(interpreter, value); twin != value)
        return length_of(interpreter, twin);
    if (known->source != nullptr && (PyList_CheckExact(object) || is_plain_dict(object)))
      return length_at_entry(interpreter, *known);
    if (builtin || is_immutable_constant(object) || PyRange_Check(object)) {
      Py_ssize_t length = PyObject_Size(object);
      if (length < 0) interpreter.refuse_raised();
      if (!is_immutable_constant(object))
        interpreter.assume(Assumption::Kind::length, known->source, {}, length);
      return interpreter.integer(length);
    }
    if (Value method = special_method(interpreter, value, "__len__"))
      return called_length(interpreter, method);
  }
  interpreter.refuse(ReasonCode::dynamic_value, "a length");
}

// --- constants ----------------------------------------------------------------------------------

namespace {

/// Whether what Python's own functions do with the object would run code of the program.
bool is_computed_by_program(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0 || is_enumeration(type)) return false;
  const Value value = std::make_shared<Known>(Object::borrow(object), nullptr);
  return std::ranges::any_of(
      std::initializer_list<const char*>{"__index__", "__int__", "__float__", "__complex__",
                                         "__floor__", "__ceil__", "__trunc__", "__round__",
                                         "__str__", "__repr__", "__format__"},
      [&](const char* method) { return has_written(value, method); });
}

}  // namespace

Object folded(Interpreter& interpreter, const Value& value) {
  if (const auto* known = as<Known>(value)) {
    if (known->source != nullptr && !is_immutable_constant(known->object.get())) {
      Value twin = opened(interpreter, value);
      if (twin != value) return folded(interpreter, twin);
      if (PySet_Check(known->object.get()))
        interpreter.refuse(ReasonCode::dynamic_value, "what a set holds");
      interpreter.assume_identity(*known);
    }
    if (is_computed_by_program(known->object.get()))
      interpreter.refuse(ReasonCode::dynamic_value,
                         "an object whose class says what it is as a number");
    return known->object;
  }
  if (is_view(value)) return folded_view(interpreter, *as<Sequence>(value));
  if (const auto* sequence = as<Sequence>(value); sequence != nullptr && !is_deque(*sequence)) {
    Object list = interpreter.must(PyList_New(0));
    for (const Value& element : sequence->elements)
      if (PyList_Append(list.get(), folded(interpreter, element).get()) < 0)
        interpreter.refuse_raised();
    if (sequence->is_list) return list;
    Object tuple = interpreter.must(PyList_AsTuple(list.get()));
    if (!sequence->type) return tuple;
    return interpreter.must(PyObject_CallOneArg(sequence->type.get(), tuple.get()));
  }
  if (const auto* slice = as<SliceValue>(value))
    return interpreter.must(PySlice_New(folded(interpreter, slice->start).get(),
                                        folded(interpreter, slice->stop).get(),
                                        folded(interpreter, slice->step).get()));
  if (const auto* dictionary = as<Dictionary>(value); dictionary != nullptr && !dictionary->type) {
    Object dict = interpreter.must(PyDict_New());
    for (const auto& [key, element] : dictionary->items)
      if (PyDict_SetItem(dict.get(), key.get(), folded(interpreter, element).get()) < 0)
        interpreter.refuse_raised();
    return dict;
  }
  if (const auto* set = as<SetValue>(value)) {
    Object result = interpreter.must(PySet_New(nullptr));
    for (const Value& element : set->elements)
      if (PySet_Add(result.get(), key_object(interpreter, element).get()) < 0)
        interpreter.refuse_raised();
    return result;
  }
  interpreter.refuse(ReasonCode::dynamic_value, "a value that only the run knows");
}

Object key_object(Interpreter& interpreter, const Value& value) {
  if (const auto* known = as<Known>(value)) {
    PyObject* object = known->object.get();
    // Hashing an object of a user's class would run its code.
    bool plain = is_immutable_constant(object) || PyType_Check(object) ||
                 PyFunction_Check(object) || PyCFunction_Check(object) || PyModule_Check(object) ||
                 is_torch_constant(object) || Py_TYPE(object)->tp_hash == PyBaseObject_Type.tp_hash;
    if (plain) {
      interpreter.assume_identity(*known);
      return known->object;
    }
  }
  if (is_view(value)) raise(interpreter, PyExc_TypeError, "TypeError: a view is not hashable");
  if (const auto* sequence = as<Sequence>(value); sequence != nullptr && !sequence->is_list) {
    Object tuple = interpreter.must(PyTuple_New(Py_ssize_t(sequence->elements.size())));
    for (size_t i = 0; i < sequence->elements.size(); ++i)
      PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i),
                       key_object(interpreter, sequence->elements[i]).release());
    return tuple;
  }
  if (const auto* tensor = as<Tensor>(value); tensor != nullptr && tensor->source != nullptr) {
    // Tensors are hashed by identity.
    interpreter.assume(Assumption::Kind::identity, tensor->source, tensor->object);
    return tensor->object;
  }
  interpreter.refuse(ReasonCode::dynamic_value, "a key");
}

// --- methods ------------------------------------------------------------------------------------

namespace {

/// Methods of containers of the real world that do not look at all that they hold.
Value unopened_method(const Value& self, const std::string& name) {
  const auto& known = *as<Known>(self);
  PyObject* object = known.object.get();
  const bool grows = PyList_CheckExact(object) || is_deque(object);
  if (PyAnySet_CheckExact(object) && known.source != nullptr) return real_set_method(self, name);
  if (grows && known.source != nullptr && (name == "append" || name == "extend"))
    return std::make_shared<Native>(
        "list." + name, [self, name](Interpreter& inner, const CallArguments& arguments) -> Value {
          expect_count(inner, arguments, 1, 1);
          const Value& argument = arguments.positional[0];
          return grow_list(
              inner, *as<Known>(self),
              name == "append" ? std::vector<Value>{argument} : elements_of(inner, argument));
        });
  return real_dict_method(self, name);
}

}  // namespace

Value container_method(Interpreter& interpreter, const Value& self, const std::string& name) {
  // A Counter has methods of its own for some of a dict's.
  if (PyTypeObject* type = class_of(self); is_counter(type))
    if (PyDict_GetItemString(type->tp_dict, name.c_str()) != nullptr) return nullptr;
  return builtin_method(interpreter, self, name);
}

Value builtin_method(Interpreter& interpreter, const Value& self, const std::string& name) {
  if (as<Known>(self) != nullptr) return unopened_method(self, name);
  if (auto sequence = shared_as<Sequence>(self))
    return sequence_method(interpreter, sequence, name);
  if (auto dictionary = shared_as<Dictionary>(self)) return dict_method(dictionary, name);
  if (auto set = shared_as<SetValue>(self)) return set_method(set, name);
  return nullptr;
}

std::shared_ptr<Dictionary> held_items(Interpreter& interpreter, const Value& object) {
  if (const auto* instance = as<Instance>(object)) return instance->items;
  const auto* known = as<Known>(object);
  if (known == nullptr || !PyDict_Check(known->object.get())) return nullptr;
  return shared_as<Dictionary>(open_dict(interpreter, *known));
}

// --- methods given with their self ---------------------------------------------------------------

namespace {

bool is_container_class(PyTypeObject* type) {
  static auto* const deque = reinterpret_cast<PyTypeObject*>(imported("collections.deque"));
  return type == &PyList_Type || type == &PyDict_Type || type == &PySet_Type ||
         type == &PyFrozenSet_Type || type == &PyTuple_Type || type == deque ||
         type == ordered_dict_type();
}

/// Whether a dict's own method changes an object made in the run, whose class is derived from dict
/// or OrderedDict, and asks no method of the object's in turn.
bool changes_items_alone(const Dictionary& items, PyObject* method, const std::string& name,
                         const CallArguments& arguments) {
  static const std::set<std::string_view> of_dict = {"update",  "setdefault", "pop",
                                                     "popitem", "clear",      "__init__"};
  const bool is_ordered = static_cast<bool>(items.type);
  // dict's own `__setitem__` would put an item past the order that an OrderedDict keeps.
  if (name == "__setitem__" || name == "__delitem__")
    return !is_ordered || PyDescr_TYPE(method) == ordered_dict_type();
  if (!is_ordered) return of_dict.contains(name);
  // All else of an OrderedDict's goes by `__setitem__`.
  return name == "__init__" && arguments.positional.size() == 1 && arguments.keywords.empty();
}

/// What an object of a class of the program's that is derived from dict holds, for a method of
/// dict's own that is asked for by name, whatever the class has in its place: to read it, and,
/// where the run made it, to change it. Null for all else.
Value items_for_method(Interpreter& interpreter, PyObject* method, const std::string& name,
                       const CallArguments& arguments) {
  static const std::set<std::string_view> reading = {
      "get", "keys", "values", "items", "__getitem__", "__contains__", "__len__", "__iter__"};
  const Value& self = arguments.positional[0];
  if (name == "__getitem__" && special_method(interpreter, self, "__missing__") != nullptr)
    return nullptr;
  const auto* instance = as<Instance>(self);
  if (instance == nullptr) return reading.contains(name) ? held_items(interpreter, self) : nullptr;
  if (instance->items == nullptr) return nullptr;
  const bool fits =
      reading.contains(name) || changes_items_alone(*instance->items, method, name, arguments);
  return fits ? instance->items : nullptr;
}

Value call_special(Interpreter& interpreter, const std::string& name,
                   const CallArguments& arguments) {
  const auto& given = arguments.positional;
  if (name == "__getitem__" && given.size() == 2) return subscript(interpreter, given[0], given[1]);
  if (name == "__contains__" && given.size() == 2)
    return interpreter.boolean(contains(interpreter, given[0], given[1]));
  if (name == "__len__" && given.size() == 1) return length_of(interpreter, given[0]);
  if (name == "__iter__" && given.size() == 1) return iterate(interpreter, given[0]);
  if (name == "__setitem__" && given.size() == 3) {
    write_subscript(interpreter, given[0], given[1], given[2]);
    return interpreter.none();
  }
  if (name == "__init__" && as<Dictionary>(given[0]) != nullptr) {
    CallArguments items = arguments;
    items.positional.erase(items.positional.begin());
    update_dict(interpreter, given[0], items);
    return interpreter.none();
  }
  if (name == "__delitem__" && given.size() == 2) {
    delete_subscript(interpreter, given[0], given[1]);
    return interpreter.none();
  }
  return nullptr;
}

/// dict.fromkeys(keys, value)
Value dict_from_keys(Interpreter& interpreter, const CallArguments& arguments) {
  expect_count(interpreter, arguments, 1, 2);
  auto dictionary = std::make_shared<Dictionary>();
  Value value = arguments.positional.size() > 1 ? arguments.positional[1] : interpreter.none();
  for (const Value& key : elements_of(interpreter, arguments.positional[0]))
    change_item(interpreter, *dictionary, key_object(interpreter, key), value);
  return dictionary;
}

}  // namespace

Value call_container_function(Interpreter& interpreter, PyObject* callable,
                              const CallArguments& arguments) {
  if (PyCFunction_Check(callable)) {
    static PyObject* const chain = imported("itertools.chain");
    if (PyCFunction_GET_SELF(callable) == chain && arguments.positional.size() == 1) {
      CallArguments iterables;  // chain.from_iterable
      iterables.positional = elements_of(interpreter, arguments.positional[0]);
      return call(interpreter, interpreter.constant_borrowed(chain), iterables);
    }
    const bool of_dict =
        PyCFunction_GET_SELF(callable) == reinterpret_cast<PyObject*>(&PyDict_Type);
    const std::string_view name = reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name;
    return of_dict && name == "fromkeys" ? dict_from_keys(interpreter, arguments) : nullptr;
  }
  const bool is_method = Py_TYPE(callable) == &PyMethodDescr_Type;
  if ((!is_method && Py_TYPE(callable) != &PyWrapperDescr_Type) ||
      !is_container_class(PyDescr_TYPE(callable)) || arguments.positional.empty())
    return nullptr;
  const std::string name = text_of(PyDescr_NAME(callable));
  Value self = arguments.positional[0];
  // A Counter's own __getitem__ is a dict's.
  PyTypeObject* type = class_of(self);
  if (type == nullptr || PyType_IsSubtype(type, PyDescr_TYPE(callable)) == 0) return nullptr;
  const auto* known = as<Known>(self);
  const bool is_of_program =
      known != nullptr && !is_plain_dict(known->object.get()) && !is_container_class(type);
  if (is_of_program || as<Instance>(self) != nullptr)
    self = items_for_method(interpreter, callable, name, arguments);
  if (self == nullptr) return nullptr;
  CallArguments rest = arguments;
  rest.positional[0] = self;
  if (name.starts_with("__")) return call_special(interpreter, name, rest);
  rest.positional.erase(rest.positional.begin());
  Value method = builtin_method(interpreter, self, name);
  if (method == nullptr) method = builtin_method(interpreter, opened(interpreter, self), name);
  return method == nullptr ? nullptr : call(interpreter, method, rest);
}

}  // namespace janus::frontend
