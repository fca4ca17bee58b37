#include "frontend/core/identity_numbers.h"

#include "frontend/core/class_of.h"
#include "frontend/core/object_kinds.h"
#include "frontend/core/operations.h"
#include "frontend/values/constants.h"

namespace janus::frontend {

using python::Object;

namespace {

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
  begin_lasting_numbers(interpreter.output().sources);
  note_lasting_number(object);
  return interpreter.must(PyLong_FromVoidPtr(object));
}

/// A bound method, a partial, or of a class of the program that defines equality only. It is the
/// class that decides.
bool is_short_lived(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  return type == &PyMethod_Type || is_partial(type) ||
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
  begin_lasting_numbers(interpreter.output().sources);
  for (PyObject* number : identity_numbers_of(&interpreter)) {
    const Value other = numbered_by(number);
    // The classes of objects are assumed wherever these are met.
    if (other != nullptr && class_of(other) == class_of(value) &&
        identical(interpreter, other, value))
      return Object::borrow(number);
  }
  return make_identity_number(&interpreter, value);
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
