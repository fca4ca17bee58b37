// Calls the method and checks what it gives, as CPython does.
#include "frontend/objects/protocol.h"

#include "frontend/control/optional.h"
#include "frontend/core/class_of.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/narrowing.h"
#include "frontend/core/operations.h"
#include "frontend/values/truth.h"
#include "python/classes.h"

namespace janus::frontend {

namespace {

/// The class of a method's result; refuses where it is not known.
PyTypeObject* class_of_result(const Frames& frames, const Value& result, const char* method) {
  PyTypeObject* const type = class_of(result);
  if (type == nullptr)
    frames.refuse(ReasonCode::dynamic_value, cat("the class of what ", method, " gives"));
  return type;
}

[[noreturn]] void raise_class(const Frames& frames, const char* method, const PyTypeObject* type) {
  raise(frames, PyExc_TypeError, cat("TypeError: ", method, " gives a ", type->tp_name));
}

/// A value or what each of two gives, of which a branch left one.
Value checked(Interpreter& interpreter, const Value& result,
              const std::function<Value(const Value&)>& check) {
  const Value both = for_both(interpreter, result, check);
  return both != nullptr ? both : check(result);
}

Value as_length(Interpreter& interpreter, const Value& result) {
  const PyTypeObject* const type = class_of_result(interpreter, result, "__len__");
  if (type != &PyLong_Type && type != &PyBool_Type) {
    if (type->tp_as_number == nullptr || type->tp_as_number->nb_index == nullptr)
      raise_class(interpreter, "__len__", type);
    interpreter.refuse(ReasonCode::dynamic_value, "a length that is no int");
  }
  const Value length = binary(interpreter, syntax::Operator::Add, result, interpreter.integer(0));
  const Truth fits = truth_of(interpreter, compare(interpreter, syntax::CompareOperator::GtE,
                                                   length, interpreter.integer(0)));
  const python::Object example = fits.example ? fits.example : python::Object::borrow(Py_True);
  const bool holds = fits.known ? *fits.known : interpreter.follow(fits.flag, example, -1);
  if (!holds) raise(interpreter, PyExc_ValueError, "ValueError: __len__() should return >= 0");
  if (PyObject* const known = known_object(length); known != nullptr) {
    if (PyLong_AsSsize_t(known) == -1 && PyErr_Occurred() != nullptr) interpreter.refuse_raised();
  }
  return length;
}

}  // namespace

Value called_bool(Interpreter& interpreter, const Value& method) {
  const auto check = [&](const Value& result) -> Value {
    const PyTypeObject* const type = class_of_result(interpreter, result, "__bool__");
    if (type != &PyBool_Type) raise_class(interpreter, "__bool__", type);
    return result;
  };
  return checked(interpreter, call(interpreter, method, {}), check);
}

Value called_length(Interpreter& interpreter, const Value& method) {
  const auto check = [&](const Value& result) { return as_length(interpreter, result); };
  return checked(interpreter, call(interpreter, method, {}), check);
}

Value called_text(Interpreter& interpreter, const Value& method, const CallArguments& arguments) {
  const auto check = [&](const Value& result) -> Value {
    PyTypeObject* const type = class_of_result(interpreter, result, "a method for texts");
    if (PyType_IsSubtype(type, &PyUnicode_Type) == 0)
      raise_class(interpreter, "a method for texts", type);
    if (type != &PyUnicode_Type)
      interpreter.refuse(ReasonCode::expression, "the text of an object");
    return result;
  };
  return checked(interpreter, call(interpreter, method, arguments), check);
}

Value called_iterator(Interpreter& interpreter, const Value& method) {
  const Value result = call(interpreter, method, {});
  expect_narrowed(result);
  if (as<Iterator>(result) != nullptr || has_written(result, "__next__")) return result;
  const PyTypeObject* const type = class_of_result(interpreter, result, "__iter__");
  if (!python::is_iterator_class(type)) raise_class(interpreter, "__iter__", type);
  return result;
}

bool has_written(const Value& value, const char* method) {
  if (as<Instance>(value) == nullptr && as<Known>(value) == nullptr) return false;
  const python::Object name = python::Object::steal(PyUnicode_InternFromString(method));
  PyTypeObject* const type = class_of(value);
  PyObject* const found = type == nullptr ? nullptr : _PyType_Lookup(type, name.get());
  return found != nullptr && PyFunction_Check(found);
}

}  // namespace janus::frontend
