#include "speculate/heap_write.h"

#include "base/check.h"
#include "base/mutation.h"
#include "python/context_variable.h"
#include "python/version.h"
#include "speculate/describe.h"
#include "speculate/finalizers.h"
#include "speculate/path.h"

namespace janus::speculate {
namespace {

using Kind = HeapWrite::Kind;

/// Removes the key unless another thread or a destructor has removed it.
void remove_item(PyObject* dict, PyObject* key) {
  if (PyObject_DelItem(dict, key) == 0) return;
  if (PyErr_ExceptionMatches(PyExc_KeyError) == 0) throw python::ErrorSet();
  PyErr_Clear();
}

void remove_attribute(PyObject* object, PyObject* name) {
  const int status = PyType_Check(object) ? PyObject_SetAttr(object, name, nullptr)
                                          : PyObject_GenericSetAttr(object, name, nullptr);
  if (status == 0) return;
  if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) throw python::ErrorSet();
  PyErr_Clear();
}

void set_item(PyObject* dict, PyObject* key, PyObject* value) {
  if (PyDict_CheckExact(dict))
    python::check_status(PyDict_SetItem(dict, key, value));
  else
    python::check_status(PyObject_SetItem(dict, key, value));
}

void set_attribute(PyObject* object, PyObject* name, PyObject* value) {
  if (PyModule_CheckExact(object))
    python::check_status(PyDict_SetItem(PyModule_GetDict(object), name, value));
  else if (PyType_Check(object))
    python::check_status(PyObject_SetAttr(object, name, value));
  else
    python::check_status(PyObject_GenericSetAttr(object, name, value));
}

void set_tail(PyObject* list, size_t index, PyObject* elements) {
  const Py_ssize_t length = PyList_GET_SIZE(list);
  const Py_ssize_t start =
      index == HeapWrite::kEnd ? length : std::min(static_cast<Py_ssize_t>(index), length);
  python::check_status(PyList_SetSlice(list, start, length, elements));
}

void clear(PyObject* container) {
  if (PyDict_CheckExact(container)) return PyDict_Clear(container);
  python::check(PyObject_CallMethod(container, "clear", nullptr));
}

/// new + (new - old) of numbers and tensors, the result of adding twice; null for other objects.
python::Object added_twice(PyObject* old, PyObject* value) {
  python::Object result;
  const bool adds = old != nullptr && PyNumber_Check(value) && !PyBool_Check(value) &&
                    PyNumber_Check(old) && !PyBool_Check(old);
  if (adds) {
    const python::Object change = python::Object::steal(PyNumber_Subtract(value, old));
    if (change) result = python::Object::steal(PyNumber_Add(value, change.get()));
  }
  PyErr_Clear();
  return result;
}

/// Writes attributes of objects discovered at run time (HeapWrite::Kind::met). `wrongly`: as a
/// planted mutation demands.
void set_met(PyObject* names, PyObject* writes, bool wrongly) {
  const Py_ssize_t count = PyTuple_GET_SIZE(names);
  std::vector<Py_ssize_t> next(static_cast<size_t>(count), 0);
  const auto write = [&](Py_ssize_t number) {
    PyObject* item =
        PyList_GET_ITEM(PyTuple_GET_ITEM(writes, number), next[static_cast<size_t>(number)]++);
    PyObject *object = PyTuple_GET_ITEM(item, 0), *name = PyTuple_GET_ITEM(names, number);
    python::Object value = python::Object::borrow(PyTuple_GET_ITEM(item, 1));
    if (wrongly) {
      const auto old = python::Object::steal(PyObject_GetAttr(object, name));
      PyErr_Clear();
      python::Object again = added_twice(old.get(), value.get());
      if (again && is_planted(State::met, Mutation::twice)) value = std::move(again);
    }
    python::check_status(PyObject_GenericSetAttr(object, name, value.get()));
  };
  PyObject* order = PyTuple_GET_ITEM(writes, count > 1 ? count : 0);
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(order); ++i)
    write(count > 1 ? PyLong_AsSsize_t(PyList_GET_ITEM(order, i)) : 0);
}

python::Object item_of(PyObject* dict, PyObject* key) {
  return dict != nullptr && PyDict_Check(dict)
             ? python::Object::borrow(PyDict_GetItemWithError(dict, key))
             : python::Object();
}

/// The attribute's value in a slot or in the object's own dictionary.
python::Object own_attribute(PyObject* object, PyObject* name) {
  if (PyType_Check(object))
    return item_of(python::class_dict(reinterpret_cast<PyTypeObject*>(object)), name);
  if (slot_of(object, name) != nullptr)
    return python::Object::steal(PyObject_GenericGetAttr(object, name));
  return item_of(instance_dict(object), name);
}

/// The kind of state that the write changes, for mutations.
State state_of(Kind kind, PyObject* owner, PyObject* key) {
  switch (kind) {
    case Kind::attribute: {
      PyObject* place = PyType_Check(owner) ? nullptr : _PyType_Lookup(Py_TYPE(owner), key);
      return place != nullptr && Py_IS_TYPE(place, &PyMemberDescr_Type) ? State::slot
                                                                        : State::attribute;
    }
    case Kind::item:
      return State::item;
    case Kind::clear:
      return PyAnySet_Check(owner) ? State::set : State::item;
    case Kind::member:
      return State::set;
    case Kind::tail:
    case Kind::extend:
      return State::list;
    case Kind::met:
      return State::met;
    default:
      return State::variable;
  }
}

}  // namespace

HeapWriter::HeapWriter(const HeapWrite& write, const Recipe::Capture& capture)
    : kind_(write.kind),
      owner_(capture(write.owner)),
      key_(write.key),
      index_(write.index),
      deletes_(write.deletes),
      value_(write.value, capture) {}

python::Object HeapWriter::value(std::span<const python::Object> captured,
                                 std::span<execute::Slot> results, Recipe::Made& made) const {
  return deletes_ ? python::Object() : value_.build(captured, results, made);
}

/// Whether the write appends to a list or deque.
bool HeapWriter::is_at_end() const {
  return kind_ == Kind::extend || (kind_ == Kind::tail && index_ == HeapWrite::kEnd);
}

void HeapWriter::write_wrongly(std::span<const python::Object> captured, PyObject* value) const {
  PyObject* const owner = captured[owner_].get();
  const State state = state_of(kind_, owner, key_.get());
  if (is_planted(state, Mutation::not_written)) return;
  if (kind_ == Kind::met) return set_met(key_.get(), value, /*wrongly=*/true);
  const python::Object old = value_before(owner);
  const bool has_finalizer = old && Py_TYPE(old.get())->tp_finalize != nullptr;
  if (has_finalizer && is_planted(State::finalizer, Mutation::not_written)) Py_INCREF(old.get());
  const bool has_key = kind_ == Kind::item || (kind_ == Kind::attribute && state != State::slot);
  if (old && value != nullptr && has_key && is_planted(State::key_order, Mutation::twice))
    write_to(owner, nullptr);
  write_to(owner, value);
  if (value == nullptr) return;
  const python::Object again =
      is_at_end() ? python::Object::borrow(value) : added_twice(old.get(), value);
  if (again && is_planted(state, Mutation::twice)) write_to(owner, again.get());
}

/// The old value of the place; null if there is none, or it is unknown. Runs no code of the
/// program.
python::Object HeapWriter::value_before(PyObject* owner) const {
  PyObject* key = key_.get();
  python::Object old;
  if (kind_ == Kind::attribute)
    old = own_attribute(owner, key);
  else if (kind_ == Kind::item)
    old = item_of(owner, key);
  else if (kind_ == Kind::global)
    old = item_of(PyFunction_Check(owner) ? PyFunction_GET_GLOBALS(owner) : owner, key);
  else if (kind_ == Kind::cell)
    old = python::Object::steal(PyCell_Get(
        PyTuple_GET_ITEM(PyFunction_GET_CLOSURE(owner), static_cast<Py_ssize_t>(index_))));
  else if (kind_ == Kind::context_variable)
    old = python::held_by_context_variable(owner);
  PyErr_Clear();
  return old;
}

bool HeapWriter::runs_finalizer(std::span<const python::Object> captured) const {
  PyObject* const owner = captured[owner_].get();
  if (kind_ == Kind::tail || kind_ == Kind::clear || kind_ == Kind::extend)
    return frees_an_element(owner, captured);
  constexpr Py_ssize_t kReferences = 2;  // the place's, and `old`
  const python::Object old = value_before(owner);
  return old && would_run_finalizer(old.get(), kReferences, captured);
}

/// Whether removed elements of a list, dict, set or deque have visible finalizers. Elements that
/// only move within a list count as well.
bool HeapWriter::frees_an_element(PyObject* owner, std::span<const python::Object> captured) const {
  static constexpr Py_ssize_t kReferences = 1;
  if (PyList_Check(owner)) {
    const auto size = static_cast<size_t>(PyList_GET_SIZE(owner));
    for (size_t i = index_; i < size; ++i)
      if (would_run_finalizer(PyList_GET_ITEM(owner, static_cast<Py_ssize_t>(i)), kReferences,
                              captured))
        return true;
    return false;
  }
  if (kind_ == Kind::extend && index_ == 0) return false;
  struct Elements {
    std::span<const python::Object> captured;
    static int visit(PyObject* each, void* elements) {
      return would_run_finalizer(each, kReferences, static_cast<Elements*>(elements)->captured) ? 1
                                                                                                : 0;
    }
  } elements{captured};
  const traverseproc traverse = Py_TYPE(owner)->tp_traverse;
  return traverse != nullptr && traverse(owner, Elements::visit, &elements) != 0;
}

std::string HeapWriter::describe() const {
  switch (kind_) {
    case Kind::attribute:
    case Kind::item:
    case Kind::global:
      return describe_object(key_.get());
    case Kind::cell:
      return "a variable";
    case Kind::context_variable:
      return "a context variable";
    default:
      return "an element";
  }
}

void HeapWriter::write_to(PyObject* owner, PyObject* value) const {
  PyObject* key = key_.get();
  switch (kind_) {
    case Kind::attribute:
      return value == nullptr ? remove_attribute(owner, key) : set_attribute(owner, key, value);
    case Kind::item:
      return value == nullptr ? remove_item(owner, key) : set_item(owner, key, value);
    case Kind::tail:
      return set_tail(owner, index_, value);
    case Kind::clear:
      return clear(owner);
    case Kind::member:
      python::check_status(deletes_ ? PySet_Discard(owner, key) : PySet_Add(owner, key));
      return;
    case Kind::extend:
      for (size_t i = 0; i < index_ && PyObject_Size(owner) > 0; ++i)
        python::check(PyObject_CallMethod(owner, "popleft", nullptr));
      python::check(PyObject_CallMethod(owner, "extend", "O", value));
      return;
    case Kind::met:
      return set_met(key, value, /*wrongly=*/false);
    case Kind::global: {
      PyObject* globals = PyFunction_Check(owner) ? PyFunction_GET_GLOBALS(owner) : owner;
      return value == nullptr ? remove_item(globals, key) : set_item(globals, key, value);
    }
    case Kind::context_variable:
      python::check(PyContextVar_Set(owner, value));
      return;
    case Kind::cell: {
      PyObject* closure = PyFunction_GET_CLOSURE(owner);
      python::check_status(
          PyCell_Set(PyTuple_GET_ITEM(closure, static_cast<Py_ssize_t>(index_)), value));
      return;
    }
  }
}

}  // namespace janus::speculate
