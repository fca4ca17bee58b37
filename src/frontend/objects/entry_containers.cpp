// Each pre-existing container is opened at most once; changes go to what stands for it and,
// at the end of the run, to the container (core/heap.h).
#include "frontend/objects/entry_containers.h"

#include "frontend/control/entry_lists.h"
#include "frontend/core/class_of.h"
#include "frontend/core/keys.h"
#include "frontend/core/narrowing.h"
#include "frontend/objects/container_classes.h"
#include "frontend/objects/deques.h"
#include "frontend/values/constants.h"
#include "python/dict_keys.h"

namespace janus::frontend {

using python::Object;

const Source* length_path(GraphWriter& writer, const Source* source) {
  return writer.sources().step(Source::Kind::length, source);
}

void note_length(Interpreter& interpreter, const Source* source) {
  interpreter.note_written(length_path(interpreter, source), interpreter.integer(-1));
}

Value part_at_entry(Interpreter& interpreter, PyObject* object, const Known& known,
                    Source::Kind kind, const Object& key, Py_ssize_t index) {
  const Source* source = known.source == nullptr
                             ? nullptr
                             : interpreter.sources().step(kind, known.source, key, index);
  return interpreter.wrap(object, source);
}

namespace {

/// Whether the item is a rate that a scheduler of torch's sets: it notes the first one beside it.
bool is_scheduled(PyObject* dict, PyObject* key) {
  static PyObject* const rate = python::interned("lr");
  static PyObject* const first = python::interned("initial_lr");
  return PyUnicode_CheckExact(key) && PyUnicode_Compare(key, rate) == 0 && PyDict_Check(dict) &&
         PyDict_GetItemWithError(dict, first) != nullptr;
}

}  // namespace

Value dict_part(Interpreter& interpreter, PyObject* object, const Known& known, const Object& key) {
  const Source* source = known.source;
  bool attributes = source != nullptr && source->kind == Source::Kind::attribute &&
                    PyUnicode_CheckExact(key.get()) && text_of(source->key.get()) == "__dict__";
  if (attributes)
    return interpreter.wrap(
        object, interpreter.sources().step(Source::Kind::instance_value, source->base, key));
  if (source != nullptr && is_scheduled(known.object.get(), key.get()))
    interpreter.expect_change(interpreter.sources().step(Source::Kind::item, source, key));
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

/// The elements of a deque as they were at the entry, with guards. A deque that is being filled has
/// another length at each call: it is refused.
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
  // The class may have a `__len__` of its own.
  const Py_ssize_t length = is_deque(object) ? PyObject_Size(object) : Py_SIZE(object);
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

}  // namespace

/// A list is opened once in a run; the opened list takes its changes. Parts that are read by one
/// path were guarded by the other one, so both must lead to the same container.
Value open_sequence(Interpreter& interpreter, const Known& known) {
  PyObject* object = known.object.get();
  if ((!PyList_Check(object) && !is_deque(object)) || known.source == nullptr)
    return elements_at_entry(interpreter, known);
  if (const Heap::List* open = interpreter.heap.list(object, known.source); open && open->shadow) {
    interpreter.assume_same_object(known.source, open->shadow->source);
    return open->shadow;
  }
  auto shadow = elements_at_entry(interpreter, known);
  Heap::List& list = interpreter.heap.list_of(object, known.source);
  list.at_entry = shadow->elements;
  if (const std::vector<Value>& appended = list.appended->elements; !appended.empty()) {
    shadow->elements.insert(shadow->elements.end(), appended.begin(), appended.end());
    list.appended->elements.clear();
    trim_deque(*shadow, true);
  }
  list.shadow = shadow;
  return shadow;
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

/// A dict is opened once as well; the heap's table keeps its changes.
Value open_dict(Interpreter& interpreter, const Known& known) {
  PyObject* object = known.object.get();
  Heap& heap = interpreter.heap;
  if (Heap::Table* open = heap.table(object); open != nullptr && open->shadow) {
    open->paths.insert(known.source);
    interpreter.assume_same_object(known.source, open->shadow->source);
    return open->shadow;
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
  table.shadow = dictionary;
  return dictionary;
}

}  // namespace

Value open_container(Interpreter& interpreter, const Value& value) {
  expect_narrowed(value);
  const auto* known = as<Known>(value);
  if (known == nullptr) return value;
  PyObject* object = known->object.get();
  if (PyList_CheckExact(object) || is_tuple_like(object) ||
      (is_deque(object) && known->source != nullptr))
    return open_sequence(interpreter, *known);
  if (is_plain_dict(object)) return open_dict(interpreter, *known);
  return value;
}

std::shared_ptr<Sequence> held_elements(Interpreter& interpreter, const Value& object) {
  if (const auto* instance = as<Instance>(object)) return instance->elements;
  const auto* known = as<Known>(object);
  if (known == nullptr || known->source == nullptr || !PyList_Check(known->object.get()))
    return nullptr;
  return shared_as<Sequence>(open_sequence(interpreter, *known));
}

Value list_contents(Interpreter& interpreter, const Value& value) {
  if (!is_list_class(class_of(value))) return nullptr;
  const Value whole = opened(interpreter, value);
  return as<Sequence>(whole) != nullptr ? whole : held_elements(interpreter, value);
}

std::shared_ptr<Dictionary> held_items(Interpreter& interpreter, const Value& object) {
  if (const auto* instance = as<Instance>(object)) return instance->items;
  const auto* known = as<Known>(object);
  if (known == nullptr || !PyDict_Check(known->object.get())) return nullptr;
  return shared_as<Dictionary>(open_dict(interpreter, *known));
}

}  // namespace janus::frontend
