// Conversions are scalar operators of the graph; what is known is computed now.
#include "frontend/language/numbers.h"

#include <cmath>

#include "frontend/core/class_entry.h"
#include "frontend/core/exceptions.h"
#include "frontend/core/narrowing.h"
#include "frontend/core/object_kinds.h"
#include "frontend/core/operations.h"
#include "frontend/values/number_kinds.h"
#include "frontend/values/truth.h"
#include "ops/list.h"
#include "python/integer.h"

namespace janus::frontend {

using graph::Type;
using python::Object;

Value convert_number(Interpreter& interpreter, const Value& value, Type::Kind kind) {
  const auto& number = *as<Number>(value);
  if (number.type == kind) return value;
  PyTypeObject* type = kind == Type::Kind::i64   ? &PyLong_Type
                       : kind == Type::Kind::f64 ? &PyFloat_Type
                                                 : &PyBool_Type;
  if (kind == Type::Kind::i64 && number.type == Type::Kind::f64 && number.example &&
      is_awaited(interpreter, PyExc_ValueError))
    follow_raising(interpreter,
                   interpreter.number(
                       op::scalar_isnan(interpreter.builder(), {interpreter.graph_value(value)})),
                   std::isnan(PyFloat_AsDouble(number.example.get())));
  Object example;
  if (number.example)
    example = interpreter.must(
        PyObject_CallOneArg(reinterpret_cast<PyObject*>(type), number.example.get()));
  if (kind == Type::Kind::boolean && number.dim && number.dim->lower_bound().value_or(0) > 0)
    return interpreter.boolean(true);
  const graph::OpDef& converts = kind == Type::Kind::i64   ? op::scalar_int
                                 : kind == Type::Kind::f64 ? op::scalar_float
                                                           : op::scalar_bool;
  return interpreter.number(converts(interpreter.builder(), {interpreter.graph_value(value)}),
                            example);
}

Value plain_number(Interpreter& interpreter, const Value& value,
                   std::initializer_list<std::string> methods) {
  expect_narrowed(value);
  const auto* known = as<Known>(value);
  if (known == nullptr || !PyLong_Check(known->object.get()) || is_number(value)) return value;
  PyTypeObject* const type = Py_TYPE(known->object.get());
  if (!is_enumeration(type)) return value;
  for (const std::string& method : methods)
    if (class_entry(interpreter, type, method.c_str()) !=
        class_entry(interpreter, &PyLong_Type, method.c_str()))
      return value;
  interpreter.assume_identity(*known);
  // The number that it is, whatever its `__int__` says.
  return interpreter.constant(
      interpreter.must(PyLong_Type.tp_as_number->nb_int(known->object.get())));
}

void follow_raising(Interpreter& interpreter, const Value& flag, bool raises) {
  const Truth truth = truth_of(interpreter, flag);
  if (!truth.known) interpreter.follow(truth.flag, Object::borrow(raises ? Py_True : Py_False), -1);
}

}  // namespace janus::frontend
