#include "frontend/core/identity_numbers.h"

#include <algorithm>
#include <set>

#include "frontend/core/class_of.h"
#include "frontend/core/operations.h"
#include "frontend/core/torch_objects.h"
#include "frontend/values/constants.h"

namespace janus::frontend {

using python::Object;

namespace {

/// A number does not keep alive what the run makes: in a dict that holds its own id that would be a
/// cycle.
struct Numbered {
  const void* interpretation;
  Value known;
  std::weak_ptr<AbstractValue> made;
};

struct IdentityNumber {
  PyObject_HEAD Numbered* of;
};

/// All of this thread. They end with the interpretation that they belong to.
thread_local std::vector<PyObject*> numbers;

Numbered& numbered(PyObject* number) { return *reinterpret_cast<IdentityNumber*>(number)->of; }

void deallocate(PyObject* number) {
  std::erase(numbers, number);
  delete &numbered(number);
  PyTypeObject* const type = Py_TYPE(number);
  type->tp_free(number);
  Py_DECREF(type);
}

void set_error() {
  PyErr_SetString(PyExc_RuntimeError, "the id of an object that only the run knows");
}
PyObject* no_text(PyObject* /*number*/) {
  set_error();
  return nullptr;
}
Py_hash_t no_hash(PyObject* /*number*/) {
  set_error();
  return -1;
}

template <class Pointer>
void* slot(Pointer pointer) {
  return reinterpret_cast<void*>(pointer);
}

PyTypeObject* number_class() {
  static PyType_Slot slots[] = {{Py_tp_dealloc, slot(deallocate)},
                                {Py_tp_repr, slot(no_text)},
                                {Py_tp_hash, slot(no_hash)},
                                {0, nullptr}};
  static PyType_Spec spec = {"torchjanus.IdentityNumber", sizeof(IdentityNumber), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  static auto* const type =
      reinterpret_cast<PyTypeObject*>(python::check(PyType_FromSpec(&spec)).release());
  return type;
}

/// What lasting_number() gave in this interpretation.
struct LastingNumbers {
  std::weak_ptr<const speculate::SourceTable> interpretation;
  std::set<const void*> addresses;
};
thread_local LastingNumbers lasting;

/// Those of this interpretation.
LastingNumbers& lasting_of(Interpreter& interpreter) {
  const std::shared_ptr<const speculate::SourceTable> now = interpreter.output().sources;
  if (lasting.interpretation.lock() != now) lasting = {now, {}};
  return lasting;
}

bool can_be_made(const Value& value) {
  switch (value->kind) {
    case ValueKind::instance:
    case ValueKind::sequence:
    case ValueKind::dictionary:
    case ValueKind::set:
      return true;
    default:
      return false;
  }
}

/// Of an object that is assumed to be that one at each entry.
Object lasting_number(Interpreter& interpreter, PyObject* object) {
  lasting_of(interpreter).addresses.insert(object);
  return interpreter.must(PyLong_FromVoidPtr(object));
}

/// A bound method, a partial, or of a class of the program that defines equality only. It is the
/// class that decides.
bool is_short_lived(PyObject* object) {
  static PyObject* const partial = imported("functools.partial");
  PyTypeObject* const type = Py_TYPE(object);
  return type == &PyMethod_Type || reinterpret_cast<PyObject*>(type) == partial ||
         ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 &&
          type->tp_hash == PyObject_HashNotImplemented);
}

bool comes_and_goes(const Value& value) {
  PyObject* const object = known_object(value);
  if (object == nullptr) return can_be_made(value);
  return is_immutable_constant(object) || is_short_lived(object);
}

/// The one that there is already, or a new one.
Object number_in_run(Interpreter& interpreter, const Value& value) {
  lasting_of(interpreter);  // those of an earlier interpretation say nothing of this one's
  for (PyObject* number : numbers) {
    if (numbered(number).interpretation != &interpreter) continue;
    const Value other = numbered_by(number);
    // The classes of objects are assumed wherever these are met.
    if (other != nullptr && class_of(other) == class_of(value) &&
        identical(interpreter, other, value))
      return Object::borrow(number);
  }
  Object made = Object::steal(number_class()->tp_alloc(number_class(), 0));
  if (!made) throw python::ErrorSet();
  const bool is_known = as<Known>(value) != nullptr;
  reinterpret_cast<IdentityNumber*>(made.get())->of =
      new Numbered{&interpreter, is_known ? value : nullptr,
                   is_known ? std::weak_ptr<AbstractValue>() : std::weak_ptr(value)};
  numbers.push_back(made.get());
  return made;
}

}  // namespace

Object identity_number(Interpreter& interpreter, const Value& value) {
  if (const auto* tensor = as<Tensor>(value)) {
    if (tensor->source == nullptr || !tensor->object) return {};
    interpreter.assume(Assumption::Kind::identity, tensor->source, tensor->object);
    return lasting_number(interpreter, tensor->object.get());
  }
  if (comes_and_goes(value)) return number_in_run(interpreter, value);
  const auto* known = as<Known>(value);
  if (known == nullptr) return {};
  interpreter.assume_identity(*known);
  return lasting_number(interpreter, known->object.get());
}

bool is_lasting_number(PyObject* number) {
  if (!PyLong_CheckExact(number)) return false;
  const void* const address = PyLong_AsVoidPtr(number);
  PyErr_Clear();
  return lasting.addresses.contains(address);
}

bool is_identity_number(PyObject* object) {
  return object != nullptr && Py_IS_TYPE(object, number_class());
}

Value numbered_by(PyObject* number) {
  if (!is_identity_number(number)) return nullptr;
  const Numbered& of = numbered(number);
  return of.known != nullptr ? of.known : of.made.lock();
}

bool is_number_of(Interpreter& interpreter, PyObject* number, const Value& value) {
  if (const Value other = numbered_by(number))
    return class_of(other) == class_of(value) && identical(interpreter, other, value);
  if (!is_lasting_number(number) || comes_and_goes(value)) return false;
  const auto* tensor = as<Tensor>(value);
  PyObject* const object = tensor != nullptr ? tensor->object.get() : known_object(value);
  return object != nullptr && PyLong_AsVoidPtr(number) == object &&
         identity_number(interpreter, value).get() != nullptr;
}

}  // namespace janus::frontend
