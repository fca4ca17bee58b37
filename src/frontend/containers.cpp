// Containers as the function sees them: those it makes itself are kept as their parts; those of the
// real world are opened into such twins, with guards. What is written to those goes to the heap's
// overlay (heap.h); what does not depend on what they hold does not open them.
#include "frontend/containers.h"

#include "frontend/attributes.h"
#include "frontend/callables.h"
#include "frontend/calls.h"
#include "frontend/expressions.h"
#include "frontend/operators.h"
#include "frontend/rolled.h"
#include "frontend/tensor.h"

namespace janus::frontend {

using python::Object;

Value make_tuple(std::vector<Value> elements) {
  auto sequence = std::make_shared<Sequence>(false);
  sequence->elements = std::move(elements);
  return sequence;
}

Value make_list(std::vector<Value> elements) {
  auto sequence = std::make_shared<Sequence>(true);
  sequence->elements = std::move(elements);
  return sequence;
}

void append(Interpreter& interpreter, Sequence& list, const Value& value) {
  if (list.elements.rolled() == nullptr) return list.elements.push_back(value);
  auto longer = grown(interpreter, *list.elements.rolled(), value, false);
  if (longer == nullptr)
    throw CannotMerge{list.elements.rolled()->test, "a list that grows at both of its ends"};
  list.elements = ElementList(std::move(longer));
}

void change_item(Interpreter& interpreter, Dictionary& dictionary, const Object& key,
                 const Value& value) {
  for (auto item = dictionary.items.begin(); item != dictionary.items.end(); ++item) {
    if (!same_key(interpreter, item->first.get(), key.get())) continue;
    if (value == nullptr)
      dictionary.items.erase(item);
    else
      item->second = value;
    return;
  }
  if (value != nullptr) dictionary.items.emplace_back(key, value);
}

// --- opening ------------------------------------------------------------------------------------

namespace {

PyTypeObject* ordered_dict_type() {
  static PyObject* const type = imported("collections.OrderedDict");
  return reinterpret_cast<PyTypeObject*>(type);
}

bool is_plain_dict(PyObject* object) {
  static PyObject* const default_dict = imported("collections.defaultdict");
  return PyDict_CheckExact(object) || Py_TYPE(object) == ordered_dict_type() ||
         reinterpret_cast<PyObject*>(Py_TYPE(object)) == default_dict;
}

/// Tuples of a class of their own that hold just their elements: torch.Size, named tuples,
/// torch.return_types.
bool is_tuple_like(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  return PyTuple_CheckExact(object) || type == size_class() ||
         (PyTuple_Check(object) && PyDict_GetItemString(type->tp_dict, "_fields") != nullptr);
}

Value part(Interpreter& interpreter, PyObject* object, const Known& known, Source::Kind kind,
           const Object& key, Py_ssize_t index) {
  const Source* source = known.source == nullptr
                             ? nullptr
                             : interpreter.sources().step(kind, known.source, key, index);
  return interpreter.wrap(object, source);
}

/// The value of a dict's key at the entry; what `__dict__` holds are the attributes of its object.
Value dict_part(Interpreter& interpreter, PyObject* object, const Known& known, const Object& key) {
  const Source* source = known.source;
  bool attributes = source != nullptr && source->kind == Source::Kind::attribute &&
                    PyUnicode_CheckExact(key.get()) && text_of(source->key.get()) == "__dict__";
  if (attributes)
    return interpreter.wrap(
        object, interpreter.sources().step(Source::Kind::instance_value, source->base, key));
  return part(interpreter, object, known, Source::Kind::item, key, 0);
}

/// The elements of a list or tuple as they were at the entry, with guards.
std::shared_ptr<Sequence> elements_at_entry(Interpreter& interpreter, const Known& known) {
  PyObject* object = known.object.get();
  auto sequence = std::make_shared<Sequence>(PyList_Check(object));
  if (PyTuple_Check(object) && !PyTuple_CheckExact(object))
    sequence->type = Object::borrow(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  sequence->source = known.source;
  Py_ssize_t length = PySequence_Fast_GET_SIZE(object);
  if (length > Interpreter::kMostTrips)
    interpreter.refuse(ReasonCode::limit, cat("a container of ", length, " elements"));
  if (!is_immutable_constant(object))
    interpreter.assume(Assumption::Kind::length, known.source, {}, length);
  for (Py_ssize_t i = 0; i < length; ++i) {
    PyObject* element = PySequence_Fast_GET_ITEM(object, i);
    sequence->elements.push_back(
        is_immutable_constant(object)
            ? interpreter.constant_borrowed(element)
            : part(interpreter, element, known, Source::Kind::index, {}, i));
  }
  return sequence;
}

/// A list has one twin for the whole run, which takes its changes.
Value open_sequence(Interpreter& interpreter, const Known& known) {
  PyObject* object = known.object.get();
  if (!PyList_CheckExact(object) || known.source == nullptr)
    return elements_at_entry(interpreter, known);
  if (const Heap::List* open = interpreter.heap.list(object, known.source); open && open->twin)
    return open->twin;
  auto twin = elements_at_entry(interpreter, known);
  Heap::List& list = interpreter.heap.list_of(object, known.source);
  list.at_entry = twin->elements;
  twin->elements.insert(twin->elements.end(), list.appended.begin(), list.appended.end());
  list.appended.clear();
  list.twin = twin;
  return twin;
}

void open_items(Interpreter& interpreter, const Known& known, Dictionary& dictionary) {
  PyObject* object = known.object.get();
  Object keys = interpreter.must(PyTuple_New(PyDict_Size(object)));
  Py_ssize_t position = 0, count = 0;
  PyObject *key = nullptr, *value = nullptr;
  while (PyDict_Next(object, &position, &key, &value) != 0)
    PyTuple_SET_ITEM(keys.get(), count++, Object::borrow(key).release());
  interpreter.assume(Assumption::Kind::keys, known.source, keys);
  for (Py_ssize_t i = 0; i < count; ++i) {
    Object owned = Object::borrow(PyTuple_GET_ITEM(keys.get(), i));
    PyObject* element = PyDict_GetItemWithError(object, owned.get());
    if (element == nullptr) interpreter.refuse_raised();
    dictionary.items.emplace_back(owned, dict_part(interpreter, element, known, owned));
  }
}

/// A dict has one twin as well; the heap's table keeps what was changed.
Value open_dict(Interpreter& interpreter, const Known& known) {
  PyObject* object = known.object.get();
  Heap& heap = interpreter.heap;
  if (Heap::Table* open = heap.table(object); open != nullptr && open->twin) {
    open->paths.insert(known.source);
    return open->twin;
  }
  auto dictionary = std::make_shared<Dictionary>();
  dictionary->source = known.source;
  dictionary->object = known.object;
  if (!heap.cleared(object)) open_items(interpreter, known, *dictionary);
  if (known.source == nullptr) return dictionary;
  Heap::Table& table = heap.table_of(dict_target(interpreter, object, known.source));
  for (const Heap::Change& change : table.changes)
    change_item(interpreter, *dictionary, change.key, change.value);
  table.twin = dictionary;
  return dictionary;
}

}  // namespace

Value opened(Interpreter& interpreter, const Value& value) {
  const auto* known = as<Known>(value);
  if (known == nullptr) return value;
  PyObject* object = known->object.get();
  if (PyList_CheckExact(object) || is_tuple_like(object)) return open_sequence(interpreter, *known);
  if (is_plain_dict(object)) return open_dict(interpreter, *known);
  return value;
}

// --- iteration ----------------------------------------------------------------------------------

std::shared_ptr<Iterator> iterate_elements(std::vector<Value> elements) {
  auto shared = std::make_shared<std::vector<Value>>(std::move(elements));
  auto position = std::make_shared<size_t>(0);
  return std::make_shared<Iterator>([shared, position]() -> Value {
    return *position < shared->size() ? (*shared)[(*position)++] : nullptr;
  });
}

namespace {

Value dictionary_part(Interpreter& interpreter, const std::pair<Object, Value>& item,
                      const std::string& part) {
  if (part == "values") return item.second;
  Value key = interpreter.constant(item.first);
  return part == "keys" ? key : make_tuple({key, item.second});
}

/// A list may grow or shrink while it is iterated, as in Python.
std::shared_ptr<Iterator> iterate_sequence(std::shared_ptr<Sequence> sequence) {
  auto position = std::make_shared<size_t>(0);
  return std::make_shared<Iterator>([sequence, position]() -> Value {
    return *position < sequence->elements.size() ? sequence->elements[(*position)++] : nullptr;
  });
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
    return index_tensor(interpreter, tensor, interpreter.integer((*position)++));
  });
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
  if (const auto* set = as<SetValue>(twin); set != nullptr && set->elements.size() <= 1) {
    std::vector<Value> elements;
    for (const Object& element : set->elements) elements.push_back(interpreter.constant(element));
    return iterate_elements(std::move(elements));
  }
  if (auto tensor = shared_as<Tensor>(twin)) return iterate_tensor(interpreter, tensor);
  if (as<Instance>(twin) != nullptr)
    if (Value method = special_method(interpreter, twin, "__iter__"))
      return iterate(interpreter, call(interpreter, method, {}));
  if (const auto* known = as<Known>(twin)) {
    PyObject* object = known->object.get();
    if (PyUnicode_CheckExact(object) || PyBytes_CheckExact(object) ||
        (PyRange_Check(object) && known->source == nullptr))
      return iterate_constant(interpreter, object);
    if (Value method = special_method(interpreter, twin, "__iter__")) {
      Value iterator = call(interpreter, method, {});
      return iterate(interpreter, iterator);
    }
  }
  interpreter.refuse(ReasonCode::dynamic_value, "what is iterated over");
}

std::vector<Value> elements_of(Interpreter& interpreter, const Value& value) {
  Value twin = opened(interpreter, value);
  if (const auto* sequence = as<Sequence>(twin); sequence != nullptr && !sequence->viewed)
    return sequence->elements;
  std::shared_ptr<Iterator> iterator = iterate(interpreter, twin);
  std::vector<Value> elements;
  while (Value element = iterator->next()) {
    elements.push_back(std::move(element));
    if (elements.size() > static_cast<size_t>(Interpreter::kMostTrips))
      interpreter.refuse(ReasonCode::limit, "a container of too many elements");
  }
  return elements;
}

namespace {

const Source* length_path(Interpreter& interpreter, const Source* source) {
  return interpreter.sources().step(Source::Kind::length, source);
}

/// A list that the run makes longer has another length each time.
void note_length(Interpreter& interpreter, const Source* source) {
  interpreter.note_written(length_path(interpreter, source), interpreter.integer(-1));
}

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
    if (list->twin != nullptr) return !list->twin->elements.empty();
    if (!list->appended.empty()) return true;
  }
  if (interpreter.heap.table(object) != nullptr)
    return !as<Dictionary>(opened(interpreter, value))->items.empty();
  bool filled = PyObject_Size(object) > 0;
  interpreter.assume(Assumption::Kind::truth, known->source, {}, filled ? 1 : 0);
  return filled;
}

namespace {

/// Whether the real set held the element at the entry: assumed.
bool held_at_entry(Interpreter& interpreter, const Known& set, const Object& element) {
  int found = PySet_Contains(set.object.get(), element.get());
  if (found < 0) interpreter.refuse_raised();
  interpreter.assume(found == 1 ? Assumption::Kind::has_key : Assumption::Kind::missing_key,
                     set.source, element);
  return found == 1;
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
        (change.value != nullptr ? 1 : 0) - (held_at_entry(interpreter, known, change.key) ? 1 : 0);
  return length;
}

}  // namespace

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
  if (as<Instance>(value) != nullptr)
    if (Value method = special_method(interpreter, value, "__len__"))
      return call(interpreter, method, {});
  if (const auto* known = as<Known>(value)) {
    PyObject* object = known->object.get();
    bool builtin = PyList_CheckExact(object) || PyTuple_Check(object) || PyDict_Check(object) ||
                   PyAnySet_CheckExact(object);
    if (PySet_CheckExact(object) && known->source != nullptr)
      return interpreter.integer(set_length(interpreter, *known));
    const Heap::List* list = interpreter.heap.list(object, known->source);
    if (list != nullptr && list->twin == nullptr && PyList_CheckExact(object)) {
      Value before = length_at_entry(interpreter, *known);
      note_length(interpreter, known->source);
      return binary(interpreter, syntax::Operator::Add, before,
                    interpreter.integer(static_cast<int64_t>(list->appended.size())));
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
      return call(interpreter, method, {});
  }
  interpreter.refuse(ReasonCode::dynamic_value, "a length");
}

// --- constants ----------------------------------------------------------------------------------

Object folded(Interpreter& interpreter, const Value& value) {
  if (const auto* known = as<Known>(value)) {
    if (known->source != nullptr && !is_immutable_constant(known->object.get())) {
      Value twin = opened(interpreter, value);
      if (twin != value) return folded(interpreter, twin);
      if (PySet_Check(known->object.get()))
        interpreter.refuse(ReasonCode::dynamic_value, "what a set holds");
      interpreter.assume_identity(*known);
    }
    return known->object;
  }
  if (const auto* sequence = as<Sequence>(value)) {
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
  if (const auto* dictionary = as<Dictionary>(value)) {
    Object dict = interpreter.must(PyDict_New());
    for (const auto& [key, element] : dictionary->items)
      if (PyDict_SetItem(dict.get(), key.get(), folded(interpreter, element).get()) < 0)
        interpreter.refuse_raised();
    return dict;
  }
  if (const auto* set = as<SetValue>(value)) {
    Object result = interpreter.must(PySet_New(nullptr));
    for (const Object& element : set->elements)
      if (PySet_Add(result.get(), element.get()) < 0) interpreter.refuse_raised();
    return result;
  }
  interpreter.refuse(ReasonCode::dynamic_value, "a value that only the run knows");
}

bool same_key(Interpreter& interpreter, PyObject* left, PyObject* right) {
  if (left == right) return true;
  Py_hash_t a = PyObject_Hash(left), b = PyObject_Hash(right);
  if (PyErr_Occurred() != nullptr) interpreter.refuse_raised();
  if (a != b) return false;
  int equal = PyObject_RichCompareBool(left, right, Py_EQ);
  if (equal < 0) interpreter.refuse_raised();
  return equal == 1;
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

// --- subscripts ---------------------------------------------------------------------------------

namespace {

Value* find_item(Interpreter& interpreter, Dictionary& dictionary, PyObject* key) {
  for (auto& [existing, value] : dictionary.items)
    if (same_key(interpreter, existing.get(), key)) return &value;
  return nullptr;
}

size_t checked_index(Interpreter& interpreter, const Sequence& sequence, const Value& key) {
  Object object = folded(interpreter, key);
  Object index = interpreter.must(PyNumber_Index(object.get()));
  Py_ssize_t position = PyLong_AsSsize_t(index.get());
  if (position == -1 && PyErr_Occurred() != nullptr) interpreter.refuse_raised();
  auto length = static_cast<Py_ssize_t>(sequence.elements.size());
  if (position < 0) position += length;
  if (position < 0 || position >= length)
    interpreter.refuse(ReasonCode::would_raise, "IndexError: index out of range");
  return static_cast<size_t>(position);
}

struct SliceRange {
  Py_ssize_t start, step, count;
};

SliceRange slice_range(Interpreter& interpreter, const SliceValue& slice, size_t length) {
  auto shared = std::make_shared<SliceValue>();
  shared->start = slice.start;
  shared->stop = slice.stop;
  shared->step = slice.step;
  Object object = folded(interpreter, shared);
  Py_ssize_t start = 0, stop = 0, step = 0;
  if (PySlice_Unpack(object.get(), &start, &stop, &step) < 0) interpreter.refuse_raised();
  Py_ssize_t count = PySlice_AdjustIndices(static_cast<Py_ssize_t>(length), &start, &stop, step);
  return {start, step, count};
}

/// Of a list that grew in the graph: one element, or all of them from the end to the beginning.
Value rolled_subscript(Interpreter& interpreter, const Rolled& list, const Value& key) {
  const auto is_known = [](const Value& value, auto&& matches) {
    const auto* known = as<Known>(value);
    return known != nullptr && matches(known->object.get());
  };
  const auto is_none = [](PyObject* object) { return object == Py_None; };
  if (const auto* slice = as<SliceValue>(key)) {
    bool reverses =
        is_known(slice->start, is_none) && is_known(slice->stop, is_none) &&
        is_known(slice->step, [](PyObject* object) {
          return PyLong_CheckExact(object) && PyLong_AsLong(object) == -1 && !PyErr_Occurred();
        });
    PyErr_Clear();
    if (!reverses) return nullptr;
    auto result = std::make_shared<Sequence>(true);
    result->elements = ElementList(reversed(list));
    return result;
  }
  const auto* number = as<Number>(key);
  bool is_position = (number != nullptr && number->type == graph::Type::Kind::i64) ||
                     is_known(key, [](PyObject* object) { return PyLong_CheckExact(object); });
  return is_position ? element_at(interpreter, list, key) : nullptr;
}

Value sequence_subscript(Interpreter& interpreter, const Sequence& sequence, const Value& key) {
  const auto* slice = as<SliceValue>(key);
  if (sequence.elements.rolled() != nullptr)
    if (Value part = rolled_subscript(interpreter, *sequence.elements.rolled(), key)) return part;
  if (slice == nullptr) return sequence.elements[checked_index(interpreter, sequence, key)];
  SliceRange range = slice_range(interpreter, *slice, sequence.elements.size());
  auto result = std::make_shared<Sequence>(sequence.is_list);
  if (sequence.type.is(reinterpret_cast<PyObject*>(size_class()))) result->type = sequence.type;
  for (Py_ssize_t i = 0; i < range.count; ++i)
    result->elements.push_back(
        sequence.elements[static_cast<size_t>(range.start + i * range.step)]);
  return result;
}

/// What d[key] gives where there is no such key: a defaultdict's is made and stored.
Value missing_item(Interpreter& interpreter, const Value& self, const Value& key) {
  PyObject* object = as<Known>(self)->object.get();
  if (PyDict_CheckExact(object) || Py_TYPE(object) == ordered_dict_type())
    interpreter.refuse(ReasonCode::would_raise, "KeyError");
  Value factory = attribute(interpreter, self, "default_factory");
  if (const auto* none = as<Known>(factory); none != nullptr && none->object.is(Py_None))
    interpreter.refuse(ReasonCode::would_raise, "KeyError");
  Value value = call(interpreter, factory, {});
  write_subscript(interpreter, self, key, value);
  return value;
}

/// One item of a real dict: only this one is guarded.
Value dict_subscript(Interpreter& interpreter, const Value& self, const Value& key) {
  const auto& known = *as<Known>(self);
  if (!contains(interpreter, self, key)) return missing_item(interpreter, self, key);
  Object object = key_object(interpreter, key);
  if (const Value* changed =
          interpreter.heap.find(interpreter, known.object.get(), object.get(), known.source))
    return *changed;
  PyObject* value = PyDict_GetItemWithError(known.object.get(), object.get());
  if (value == nullptr) interpreter.refuse_raised();
  return dict_part(interpreter, value, known, object);
}

/// One element of a real list: only this one is guarded, if counted from the front.
Value list_subscript(Interpreter& interpreter, const Known& known, const Value& key) {
  const auto* index = as<Known>(key);
  PyObject* object = known.object.get();
  const Heap::List* list = interpreter.heap.list(object, known.source);
  bool changed = list != nullptr;
  if (index != nullptr && PyLong_CheckExact(index->object.get()) && PyList_CheckExact(object)) {
    // Counted from the end, only what is there is looked at.
    Py_ssize_t position = PyLong_AsSsize_t(index->object.get());
    PyErr_Clear();
    Py_ssize_t appended =
        list != nullptr && !list->twin ? static_cast<Py_ssize_t>(list->appended.size()) : 0;
    if (position < 0 && position >= -appended)
      return list->appended[static_cast<size_t>(appended + position)];
    Py_ssize_t from_end = position + appended;
    bool unopened = list == nullptr || list->twin == nullptr;
    if (unopened && known.source != nullptr && position < 0 && -from_end <= PyList_GET_SIZE(object))
      return part(interpreter, PyList_GET_ITEM(object, PyList_GET_SIZE(object) + from_end), known,
                  Source::Kind::index, {}, from_end);
  }
  if (!changed && index != nullptr && PyLong_CheckExact(index->object.get())) {
    Py_ssize_t position = PyLong_AsSsize_t(index->object.get());
    PyErr_Clear();
    if (position >= 0 && position < PySequence_Fast_GET_SIZE(object))
      return part(interpreter, PySequence_Fast_GET_ITEM(object, position), known,
                  Source::Kind::index, {}, position);
  }
  return sequence_subscript(interpreter, *as<Sequence>(open_sequence(interpreter, known)), key);
}

/// The dict of the real world that a value is or is the twin of.
struct RealDict {
  PyObject* object = nullptr;
  const Source* source = nullptr;
};

std::optional<RealDict> real_dict(const Value& value) {
  if (const auto* known = as<Known>(value); known != nullptr && is_plain_dict(known->object.get()))
    return RealDict{known->object.get(), known->source};
  if (const auto* dictionary = as<Dictionary>(value);
      dictionary != nullptr && dictionary->source != nullptr)
    return RealDict{dictionary->object.get(), dictionary->source};
  return std::nullopt;
}

void write_real_dict(Interpreter& interpreter, const RealDict& dict, const Value& key,
                     const Value& element) {
  Object object = key_object(interpreter, key);
  Heap::Target target = dict_target(interpreter, dict.object, dict.source);
  Source::Kind kind = Source::Kind::item;
  if (target.kind == speculate::HeapWrite::Kind::attribute) {
    // Through `__dict__`: the object's attribute, if no descriptor stands in its way.
    bool is_name = PyUnicode_CheckExact(object.get());
    if (!is_name || _PyType_Lookup(Py_TYPE(target.object.get()), object.get()) != nullptr)
      interpreter.refuse(ReasonCode::heap_write, "an item of __dict__");
    interpreter.assume(Assumption::Kind::missing_attribute,
                       interpreter.sources().step(Source::Kind::type, target.owner), object);
    kind = Source::Kind::instance_value;
  }
  write_place(interpreter, target, object, interpreter.sources().step(kind, target.owner, object),
              element);
}

}  // namespace

Value subscript(Interpreter& interpreter, const Value& value, const Value& key) {
  if (auto tensor = shared_as<Tensor>(value)) return index_tensor(interpreter, tensor, key);
  if (const auto* sequence = as<Sequence>(value))
    return sequence_subscript(interpreter, *sequence, key);
  if (auto* dictionary = as<Dictionary>(value)) {
    Value* found = find_item(interpreter, *dictionary, key_object(interpreter, key).get());
    if (found == nullptr) interpreter.refuse(ReasonCode::would_raise, "KeyError");
    return *found;
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
    if (PyList_CheckExact(object) || is_tuple_like(object))
      return list_subscript(interpreter, *known, key);
    if (Value method = special_method(interpreter, value, "__getitem__")) {
      CallArguments arguments;
      arguments.positional = {key};
      return call(interpreter, method, arguments);
    }
  }
  interpreter.refuse(ReasonCode::expression, "a subscript");
}

namespace {

/// A list that changes: one made in the run, or the twin of a real one.
Sequence* changing_list(Interpreter& interpreter, const Value& value) {
  Value twin = value;
  if (const auto* known = as<Known>(value);
      known != nullptr && PyList_CheckExact(known->object.get()))
    twin = opened(interpreter, value);
  auto* sequence = as<Sequence>(twin);
  return sequence != nullptr && sequence->is_list ? sequence : nullptr;
}

/// list[start:stop] = elements
void write_slice(Interpreter& interpreter, Sequence& list, const SliceValue& slice,
                 const std::vector<Value>& elements) {
  SliceRange range = slice_range(interpreter, slice, list.elements.size());
  if (range.step != 1)
    interpreter.refuse(ReasonCode::expression, "assignment to a slice with a step");
  auto first = list.elements.begin() + range.start;
  auto place = list.elements.erase(first, first + std::max<Py_ssize_t>(0, range.count));
  list.elements.insert(place, elements.begin(), elements.end());
}

void note_list_change(Interpreter& interpreter, const Sequence& list) {
  if (list.source == nullptr) return;
  interpreter.heap.note_change();
  interpreter.mark(speculate::LineMark::Kind::effect);
}

}  // namespace

void write_subscript(Interpreter& interpreter, const Value& value, const Value& key,
                     const Value& element) {
  if (auto tensor = shared_as<Tensor>(value)) return write_index(interpreter, tensor, key, element);
  if (Sequence* list = changing_list(interpreter, value)) {
    if (const auto* slice = as<SliceValue>(key)) {
      write_slice(interpreter, *list, *slice, elements_of(interpreter, element));
      return note_list_change(interpreter, *list);
    }
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
    size_t index = checked_index(interpreter, *list, key);
    list->elements.erase(list->elements.begin() + static_cast<std::ptrdiff_t>(index));
    return note_list_change(interpreter, *list);
  }
  auto dict = real_dict(value);
  auto* dictionary = as<Dictionary>(value);
  if (dict || dictionary != nullptr) {
    if (!contains(interpreter, value, key)) interpreter.refuse(ReasonCode::would_raise, "KeyError");
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

bool contains(Interpreter& interpreter, const Value& container, const Value& element) {
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
      if (const Value* changed =
              interpreter.heap.find(interpreter, object, key.get(), known->source))
        return *changed != nullptr;
      return held_at_entry(interpreter, *known, key);
    }
    if (PyDict_Check(object) && is_plain_dict(object)) {
      Object key = key_object(interpreter, element);
      if (const Value* changed =
              interpreter.heap.find(interpreter, object, key.get(), known->source))
        return *changed != nullptr;
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
  if (auto* dictionary = as<Dictionary>(container))
    return find_item(interpreter, *dictionary, key_object(interpreter, element).get()) != nullptr;
  if (const auto* set = as<SetValue>(container)) {
    Object key = key_object(interpreter, element);
    for (const Object& existing : set->elements)
      if (same_key(interpreter, existing.get(), key.get())) return true;
    return false;
  }
  for (const Value& candidate : elements_of(interpreter, container)) {
    if (candidate == element) return true;
    Value equal = compare(interpreter, syntax::CompareOperator::Eq, candidate, element);
    if (truth(interpreter, equal, -1)) return true;
  }
  return false;
}

// --- methods ------------------------------------------------------------------------------------

namespace {

using Arguments = CallArguments;

void expect_count(Interpreter& interpreter, const Arguments& arguments, size_t least, size_t most) {
  if (arguments.positional.size() < least || arguments.positional.size() > most ||
      !arguments.keywords.empty())
    interpreter.refuse(ReasonCode::unsupported_argument, "arguments of a container's method");
}

bool is_zero(const Value& key) {
  const auto* known = as<Known>(key);
  return known != nullptr && PyLong_CheckExact(known->object.get()) &&
         PyObject_IsTrue(known->object.get()) == 0;
}

/// Adds an element at an end of a list that grew in the graph; false if that can't be.
bool grow(Interpreter& interpreter, Sequence& list, const Value& value, bool front) {
  auto longer = grown(interpreter, *list.elements.rolled(), value, front);
  if (longer == nullptr) return false;
  list.elements = ElementList(std::move(longer));
  return true;
}

/// list.pop() and list.pop(0) of such a list; null: any other.
Value pop_rolled(Interpreter& interpreter, Sequence& list, const Value& key) {
  const auto* known = as<Known>(key);
  bool last = known != nullptr && PyLong_CheckExact(known->object.get()) &&
              PyLong_AsLong(known->object.get()) == -1;
  PyErr_Clear();
  if (!last && !is_zero(key)) return nullptr;
  auto pop = popped(interpreter, *list.elements.rolled(), !last);
  if (!pop) return nullptr;
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

Value list_method(Interpreter& interpreter, const std::shared_ptr<Sequence>& list,
                  const std::string& name) {
  auto native = [&](auto function) {
    return std::make_shared<Native>(
        "list." + name, [list, function](Interpreter& inner, const Arguments& arguments) -> Value {
          Value result = function(inner, *list, arguments);
          note_list_change(inner, *list);
          return result;
        });
  };
  if (name == "append")
    return native([](Interpreter& inner, Sequence& self, const Arguments& arguments) {
      expect_count(inner, arguments, 1, 1);
      append(inner, self, arguments.positional[0]);
      return inner.none();
    });
  if (name == "extend")
    return native([](Interpreter& inner, Sequence& self, const Arguments& arguments) {
      expect_count(inner, arguments, 1, 1);
      for (Value& element : elements_of(inner, arguments.positional[0]))
        append(inner, self, element);
      return inner.none();
    });
  if (name == "insert")
    return native([](Interpreter& inner, Sequence& self, const Arguments& arguments) {
      expect_count(inner, arguments, 2, 2);
      if (self.elements.rolled() != nullptr && is_zero(arguments.positional[0]) &&
          grow(inner, self, arguments.positional[1], true))
        return inner.none();
      size_t index = insertion_point(inner, self, arguments.positional[0]);
      self.elements.insert(self.elements.begin() + static_cast<std::ptrdiff_t>(index),
                           arguments.positional[1]);
      return inner.none();
    });
  if (name == "pop")
    return native([](Interpreter& inner, Sequence& self, const Arguments& arguments) {
      expect_count(inner, arguments, 0, 1);
      Value key = arguments.positional.empty() ? inner.integer(-1) : arguments.positional[0];
      if (self.elements.rolled() != nullptr)
        if (Value element = pop_rolled(inner, self, key)) return element;
      size_t index = checked_index(inner, self, key);
      Value element = self.elements[index];
      self.elements.erase(self.elements.begin() + static_cast<std::ptrdiff_t>(index));
      return element;
    });
  if (name == "clear")
    return native([](Interpreter& inner, Sequence& self, const Arguments& arguments) {
      expect_count(inner, arguments, 0, 0);
      self.elements.clear();
      return inner.none();
    });
  if (name == "reverse")
    return native([](Interpreter& inner, Sequence& self, const Arguments& arguments) {
      expect_count(inner, arguments, 0, 0);
      if (const auto& list = self.elements.rolled())
        self.elements = ElementList(reversed(*list));
      else
        std::reverse(self.elements.begin(), self.elements.end());
      return inner.none();
    });
  if (name == "remove")
    return native([](Interpreter& inner, Sequence& self, const Arguments& arguments) {
      expect_count(inner, arguments, 1, 1);
      for (size_t i = 0; i < self.elements.size(); ++i) {
        Value equal =
            compare(inner, syntax::CompareOperator::Eq, self.elements[i], arguments.positional[0]);
        if (self.elements[i] != arguments.positional[0] && !truth(inner, equal, -1)) continue;
        self.elements.erase(self.elements.begin() + static_cast<std::ptrdiff_t>(i));
        return inner.none();
      }
      inner.refuse(ReasonCode::would_raise, "ValueError: list.remove(x): x not in list");
    });
  if (name == "sort")
    return native([](Interpreter& inner, Sequence& self, const Arguments& arguments) {
      if (!arguments.positional.empty())
        inner.refuse(ReasonCode::would_raise, "TypeError: arguments of list.sort()");
      Arguments of_sorted = arguments;
      of_sorted.positional = {make_list(self.elements)};
      Value sorted = call(inner, inner.constant_borrowed(imported("builtins.sorted")), of_sorted);
      self.elements = as<Sequence>(sorted)->elements;
      return inner.none();
    });
  if (name == "copy")
    return std::make_shared<Native>("list.copy",
                                    [list](Interpreter& inner, const Arguments& arguments) {
                                      expect_count(inner, arguments, 0, 0);
                                      auto copy = std::make_shared<Sequence>(true);
                                      copy->elements = list->elements;
                                      return Value(copy);
                                    });
  return nullptr;
}

Value sequence_method(Interpreter& interpreter, const std::shared_ptr<Sequence>& sequence,
                      const std::string& name) {
  if (sequence->is_list)
    if (Value method = list_method(interpreter, sequence, name)) return method;
  if (name == "index" || name == "count")
    return std::make_shared<Native>(
        "sequence." + name,
        [sequence, counts = name == "count"](Interpreter& inner, const Arguments& arguments) {
          expect_count(inner, arguments, 1, 1);
          int64_t found = 0;
          for (size_t i = 0; i < sequence->elements.size(); ++i) {
            Value equal = compare(inner, syntax::CompareOperator::Eq, sequence->elements[i],
                                  arguments.positional[0]);
            if (!truth(inner, equal, -1)) continue;
            if (!counts) return inner.integer(static_cast<int64_t>(i));
            ++found;
          }
          if (!counts) inner.refuse(ReasonCode::would_raise, "ValueError: not in the sequence");
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

std::vector<Value> dict_pairs(Interpreter& interpreter, const Dictionary& dictionary) {
  std::vector<Value> pairs;
  for (const auto& [key, value] : dictionary.items)
    pairs.push_back(make_tuple({interpreter.constant(key), value}));
  return pairs;
}

void update_dict(Interpreter& interpreter, const Value& self, const Arguments& arguments) {
  for (const Value& argument : arguments.positional) {
    Value other = opened(interpreter, argument);
    const auto* dictionary = as<Dictionary>(other);
    std::vector<Value> pairs = dictionary != nullptr ? dict_pairs(interpreter, *dictionary)
                                                     : elements_of(interpreter, other);
    for (const Value& pair : pairs) {
      std::vector<Value> parts = elements_of(interpreter, pair);
      if (parts.size() != 2)
        interpreter.refuse(ReasonCode::would_raise, "ValueError: dictionary update sequence");
      write_subscript(interpreter, self, parts[0], parts[1]);
    }
  }
  for (const auto& [key, value] : arguments.keywords)
    write_subscript(interpreter, self, interpreter.string(key), value);
}

/// dict.get, dict.setdefault and dict.pop share the search; of a real dict or one of the run.
Value dict_access(Interpreter& interpreter, const Value& self, const std::string& name,
                  const Arguments& arguments) {
  expect_count(interpreter, arguments, 1, 2);
  const Value& key = arguments.positional[0];
  Value otherwise = arguments.positional.size() > 1 ? arguments.positional[1] : nullptr;
  Value found = contains(interpreter, self, key) ? subscript(interpreter, self, key) : nullptr;
  if (name == "get") return found != nullptr ? found : otherwise ? otherwise : interpreter.none();
  if (name == "setdefault") {
    if (found != nullptr) return found;
    Value value = otherwise ? otherwise : interpreter.none();
    write_subscript(interpreter, self, arguments.positional[0], value);
    return value;
  }
  if (found == nullptr) {
    if (otherwise) return otherwise;
    interpreter.refuse(ReasonCode::would_raise, "KeyError");
  }
  delete_subscript(interpreter, self, key);
  return found;
}

Value dict_method(const std::shared_ptr<Dictionary>& dictionary, const std::string& name) {
  auto native = [&](Native::Function function) {
    return std::make_shared<Native>("dict." + name, std::move(function));
  };
  if (name == "keys" || name == "values" || name == "items")
    return native([dictionary, name](Interpreter& inner, const Arguments& arguments) -> Value {
      expect_count(inner, arguments, 0, 0);
      auto view = std::make_shared<Sequence>(false);
      for (const auto& item : dictionary->items)
        view->elements.push_back(dictionary_part(inner, item, name));
      view->viewed = dictionary;
      view->part = name;
      return view;
    });
  if (name == "get" || name == "setdefault" || name == "pop")
    return native([dictionary, name](Interpreter& inner, const Arguments& arguments) {
      return dict_access(inner, dictionary, name, arguments);
    });
  if (name == "update")
    return native([dictionary](Interpreter& inner, const Arguments& arguments) {
      update_dict(inner, dictionary, arguments);
      return inner.none();
    });
  if (name == "copy")
    return native([dictionary](Interpreter& inner, const Arguments& arguments) -> Value {
      expect_count(inner, arguments, 0, 0);
      auto copy = std::make_shared<Dictionary>();
      copy->items = dictionary->items;
      return copy;
    });
  if (name == "clear")
    return native([dictionary](Interpreter& inner, const Arguments& arguments) {
      expect_count(inner, arguments, 0, 0);
      if (auto dict = real_dict(dictionary))
        inner.heap.clear(dict_target(inner, dict->object, dict->source));
      dictionary->items.clear();
      return inner.none();
    });
  return nullptr;
}

Value set_method(const std::shared_ptr<SetValue>& set, const std::string& name) {
  if (name != "add") return nullptr;
  return std::make_shared<Native>("set.add", [set](Interpreter& inner, const Arguments& arguments) {
    expect_count(inner, arguments, 1, 1);
    if (!contains(inner, set, arguments.positional[0]))
      set->elements.push_back(key_object(inner, arguments.positional[0]));
    return inner.none();
  });
}

}  // namespace

namespace {

/// list.append and list.extend of a real list: what it holds does not matter.
Value grow_list(Interpreter& interpreter, const Known& known, std::vector<Value> elements) {
  Heap::List& list = interpreter.heap.list_of(known.object.get(), known.source);
  if (PyList_CheckExact(known.object.get())) note_length(interpreter, known.source);
  for (Value& element : elements) {
    if (list.twin != nullptr)
      append(interpreter, *list.twin, element);
    else
      list.appended.push_back(std::move(element));
  }
  interpreter.heap.note_change();
  interpreter.mark(speculate::LineMark::Kind::effect);
  return interpreter.none();
}

/// set.add and set.discard of a real set.
Value real_set_method(const Value& self, const std::string& name) {
  if (!PySet_CheckExact(as<Known>(self)->object.get()) || (name != "add" && name != "discard"))
    return nullptr;
  return std::make_shared<Native>(
      "set." + name, [self, name](Interpreter& inner, const Arguments& arguments) -> Value {
        expect_count(inner, arguments, 1, 1);
        const auto& known = *as<Known>(self);
        Heap::Target target;
        target.table = known.object.get();
        target.kind = speculate::HeapWrite::Kind::member;
        target.owner = known.source;
        target.object = known.object;
        write_place(inner, target, key_object(inner, arguments.positional[0]), nullptr,
                    name == "add" ? inner.none() : nullptr);
        return inner.none();
      });
}

/// Methods of containers of the real world that do not look at all that they hold.
Value unopened_method(const Value& self, const std::string& name) {
  const auto& known = *as<Known>(self);
  PyObject* object = known.object.get();
  static PyObject* const deque = imported("collections.deque");
  bool grows = PyList_CheckExact(object) || reinterpret_cast<PyObject*>(Py_TYPE(object)) == deque;
  if (PyAnySet_CheckExact(object) && known.source != nullptr) return real_set_method(self, name);
  if (grows && known.source != nullptr && (name == "append" || name == "extend"))
    return std::make_shared<Native>(
        "list." + name, [self, name](Interpreter& inner, const Arguments& arguments) -> Value {
          expect_count(inner, arguments, 1, 1);
          const Value& argument = arguments.positional[0];
          return grow_list(
              inner, *as<Known>(self),
              name == "append" ? std::vector<Value>{argument} : elements_of(inner, argument));
        });
  if (!is_plain_dict(object)) return nullptr;
  if (name == "get" || name == "setdefault" || name == "pop")
    return std::make_shared<Native>("dict." + name,
                                    [self, name](Interpreter& inner, const Arguments& arguments) {
                                      return dict_access(inner, self, name, arguments);
                                    });
  if (name == "update")
    return std::make_shared<Native>("dict.update",
                                    [self](Interpreter& inner, const Arguments& arguments) {
                                      update_dict(inner, self, arguments);
                                      return inner.none();
                                    });
  return nullptr;
}

}  // namespace

Value container_method(Interpreter& interpreter, const Value& self, const std::string& name) {
  if (as<Known>(self) != nullptr) return unopened_method(self, name);
  if (auto sequence = shared_as<Sequence>(self))
    return sequence_method(interpreter, sequence, name);
  if (auto dictionary = shared_as<Dictionary>(self)) return dict_method(dictionary, name);
  if (auto set = shared_as<SetValue>(self)) return set_method(set, name);
  return nullptr;
}

// --- comprehensions -----------------------------------------------------------------------------

namespace {

/// Walks nested `for ... if ...` clauses, one element at a time.
class ElementStream {
 public:
  ElementStream(Interpreter& interpreter, const std::vector<syntax::Comprehension>& generators,
                const syntax::Scope* scope, std::function<Value()> element)
      : interpreter_(interpreter), generators_(generators), element_(std::move(element)) {
    for (const syntax::Comprehension& clause : generators)
      if (clause.is_async) interpreter.refuse(ReasonCode::generator, "an async comprehension");
    // The first iterable belongs to the scope around.
    Value iterable = evaluate(interpreter, *generators[0].iter);
    iterators_.push_back(iterate(interpreter, iterable));
    code_ = interpreter.frame().code;
    is_library_ = interpreter.frame().is_library;
    name_ = interpreter.frame().name;
    variables_ = std::make_shared<Variables>();
    variables_->scope = scope;
    variables_->parent = interpreter.frame().variables;
  }

  Value next() {
    Frame frame = interpreter_.make_frame(code_, variables_, name_);
    frame.is_library = is_library_;
    return interpreter_.run_frame(frame, [this] { return advance(); });
  }

 private:
  Value advance() {
    while (!iterators_.empty()) {
      size_t depth = iterators_.size() - 1;
      Value item = iterators_.back()->next();
      if (item == nullptr) {
        iterators_.pop_back();
        continue;
      }
      assign(interpreter_, *generators_[depth].target, item);
      if (!passes(generators_[depth])) continue;
      if (depth + 1 == generators_.size()) return element_();
      Value iterable = evaluate(interpreter_, *generators_[depth + 1].iter);
      iterators_.push_back(iterate(interpreter_, iterable));
    }
    return nullptr;
  }

  bool passes(const syntax::Comprehension& clause) {
    for (const syntax::Expression* condition : clause.ifs)
      if (!test(interpreter_, *condition, condition->fact)) return false;
    return true;
  }

  Interpreter& interpreter_;
  const std::vector<syntax::Comprehension>& generators_;
  std::function<Value()> element_;
  std::vector<std::shared_ptr<Iterator>> iterators_;
  std::shared_ptr<const Code> code_;
  std::shared_ptr<Variables> variables_;
  std::string name_;
  bool is_library_ = false;
};

}  // namespace

std::shared_ptr<Iterator> generate_elements(Interpreter& interpreter,
                                            const std::vector<syntax::Comprehension>& generators,
                                            const syntax::Scope* scope,
                                            std::function<Value()> element) {
  auto stream = std::make_shared<ElementStream>(interpreter, generators, scope, std::move(element));
  auto generator = std::make_shared<Iterator>([stream] { return stream->next(); });
  generator->type = &PyGen_Type;
  return generator;
}

}  // namespace janus::frontend
