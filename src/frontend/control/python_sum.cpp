#include "frontend/control/python_sum.h"

#include "frontend/control/selected_number.h"
#include "frontend/core/class_of.h"
#include "frontend/core/operations.h"
#include "frontend/values/operands.h"
#include "frontend/values/truth.h"
#include "python/integer.h"
#include "python/version.h"

namespace janus::frontend {

using syntax::CompareOperator;
using syntax::Operator;

namespace {

Value zero(Interpreter& interpreter) {
  return interpreter.constant(python::check(PyFloat_FromDouble(0)));
}

/// One of two floats.
Value either(Interpreter& interpreter, const Value& test, const Value& yes, const Value& no) {
  if (const Truth truth = truth_of(interpreter, test); truth.known) return *truth.known ? yes : no;
  const Value result = selected(interpreter, test, yes, no);
  TORCHJANUS_CHECK(result != nullptr, "sum: neither float is a number");
  return result;
}

bool is_float(const Value& value) { return class_of(value) == &PyFloat_Type; }

/// An int, but none of a class of the program; a bool may be an element, and no start.
bool is_int(const Value& value) { return class_of(value) == &PyLong_Type; }

bool is_any_int(const Value& value) { return PyType_IsSubtype(class_of(value), &PyLong_Type) != 0; }

/// An int of any class that a C `long` has room for.
bool is_small_int(const Value& value) {
  if (!is_any_int(value)) return false;
  PyObject* const known = known_object(value);
  return known == nullptr || python::int64_of(known).has_value();
}

}  // namespace

FloatSum float_sum(Interpreter& interpreter, const Value& start) {
  return {start, zero(interpreter)};
}

FloatSum added(Interpreter& interpreter, const FloatSum& sum, const Value& number) {
  const Value element =
      is_float(number) ? number : binary(interpreter, Operator::Add, number, zero(interpreter));
  const auto add = [&](const Value& a, const Value& b) {
    return binary(interpreter, Operator::Add, a, b);
  };
  const auto subtract = [&](const Value& a, const Value& b) {
    return binary(interpreter, Operator::Sub, a, b);
  };
  const Value total = add(sum.total, element);
  // What was added in fact. CPython compares the operands instead, to the same result.
  const Value taken = subtract(total, sum.total);
  const Value lost = add(subtract(sum.total, subtract(total, taken)), subtract(element, taken));
  return {total, add(sum.lost, lost)};
}

Value whole(Interpreter& interpreter, const FloatSum& sum) {
  const auto is_zero = [&](const Value& value) {
    return compare(interpreter, CompareOperator::Eq, value, zero(interpreter));
  };
  const Value corrected = binary(interpreter, Operator::Add, sum.total, sum.lost);
  const Value difference = binary(interpreter, Operator::Sub, sum.lost, sum.lost);
  const Value if_finite = either(interpreter, is_zero(difference), corrected, sum.total);
  // A zero as a sum keeps its sign.
  return either(interpreter, is_zero(sum.lost), sum.total, if_finite);
}

PythonSum::PythonSum(Interpreter& interpreter, const Value& start)
    : interpreter_(interpreter), sum_(float_sum(interpreter, start)) {
  if (!python::kCompensatesSums) return;
  if (is_int(start)) phase_ = Phase::ints;
  if (is_float(start)) phase_ = Phase::floats;
}

void PythonSum::add(const Value& element) {
  if (phase_ == Phase::others) {  // whose classes may be the run's to decide
    sum_.total = binary(interpreter_, Operator::Add, sum_.total, element);
    return;
  }
  const bool is_lossy =
      is_float(element) || (python::kCompensatesIntsInSums && is_any_int(element));
  if (phase_ == Phase::floats && is_lossy) {
    sum_ = added(interpreter_, sum_, element);
    return;
  }
  if (phase_ == Phase::floats && !is_small_int(element)) {
    sum_.total = value();
    phase_ = Phase::others;
  }
  sum_.total = binary(interpreter_, Operator::Add, sum_.total, element);
  const bool stays_int =
      is_small_int(sum_.total) && (is_int(element) || class_of(element) == &PyBool_Type);
  if (phase_ == Phase::ints && !stays_int)
    phase_ = is_float(sum_.total) ? Phase::floats : Phase::others;
}

Value PythonSum::value() const {
  return phase_ == Phase::floats ? whole(interpreter_, sum_) : sum_.total;
}

}  // namespace janus::frontend
