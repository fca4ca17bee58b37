// Each operation also computes its example: what it gives for the numbers of the call at hand.
#include "frontend/language/number_operators.h"

#include "frontend/core/exceptions.h"
#include "frontend/core/flags.h"
#include "frontend/core/operations.h"
#include "frontend/language/numbers.h"
#include "frontend/language/python_calls.h"
#include "frontend/values/operands.h"
#include "ops/list.h"
#include "python/integer.h"

namespace janus::frontend {

using graph::Dim;
using graph::Type;
using python::Object;
using syntax::Operator;

PyObject* apply_python(Operator op, PyObject* left, PyObject* right) {
  switch (op) {
    case Operator::Add:
      return PyNumber_Add(left, right);
    case Operator::Sub:
      return PyNumber_Subtract(left, right);
    case Operator::Mult:
      return PyNumber_Multiply(left, right);
    case Operator::MatMult:
      return PyNumber_MatrixMultiply(left, right);
    case Operator::Div:
      return PyNumber_TrueDivide(left, right);
    case Operator::Mod:
      return PyNumber_Remainder(left, right);
    case Operator::Pow:
      return PyNumber_Power(left, right, Py_None);
    case Operator::LShift:
      return PyNumber_Lshift(left, right);
    case Operator::RShift:
      return PyNumber_Rshift(left, right);
    case Operator::BitOr:
      return PyNumber_Or(left, right);
    case Operator::BitXor:
      return PyNumber_Xor(left, right);
    case Operator::BitAnd:
      return PyNumber_And(left, right);
    case Operator::FloorDiv:
      return PyNumber_FloorDivide(left, right);
  }
  return nullptr;
}

namespace {

Type::Kind number_kind(const Value& value) {
  if (const auto* number = as<Number>(value)) return number->type;
  PyObject* object = as<Known>(value)->object.get();
  if (PyBool_Check(object)) return Type::Kind::boolean;
  return PyFloat_CheckExact(object) ? Type::Kind::f64 : Type::Kind::i64;
}

/// Null: numbers have no such operator.
const graph::OpDef* scalar_operator(Operator op) {
  switch (op) {
    case Operator::Add:
      return &op::scalar_add;
    case Operator::Sub:
      return &op::scalar_sub;
    case Operator::Mult:
      return &op::scalar_mul;
    case Operator::Div:
      return &op::scalar_truediv;
    case Operator::Mod:
      return &op::scalar_mod;
    case Operator::FloorDiv:
      return &op::scalar_floordiv;
    case Operator::Pow:
      return &op::scalar_pow;
    default:
      return nullptr;
  }
}

std::optional<Dim> dim_arithmetic(Operator op, const Value& left, const Value& right) {
  std::optional<Dim> a = dim_of(left), b = dim_of(right);
  if (!a || !b) return std::nullopt;
  try {
    switch (op) {
      case Operator::Add:
        return *a + *b;
      case Operator::Sub:
        return *a - *b;
      case Operator::Mult:
        return *a * *b;
      case Operator::FloorDiv:
        return b->is(0) ? std::nullopt : std::optional(floor_divide(*a, *b));
      case Operator::Mod:
        return b->is(0) ? std::nullopt : std::optional(remainder(*a, *b));
      default:
        return std::nullopt;
    }
  } catch (const std::exception&) {
    return std::nullopt;  // an overflow: left to the checked scalar operator
  }
}

/// Whether a division of dimensions may raise. A quotient of dimensions is computed only where a
/// size needs it, so the check must stand where the program divides.
bool may_divide_by_zero(Operator op, const Value& divisor) {
  if (op != Operator::FloorDiv && op != Operator::Mod) return false;
  return dim_of(divisor)->lower_bound().value_or(0) < 1 &&
         dim_of(divisor)->upper_bound().value_or(0) >= 0;
}

/// Guards that the number is not negative.
bool assume_not_negative(Interpreter& interpreter, const Value& number) {
  graph::Builder& builder = interpreter.builder();
  graph::Value* fits =
      op::scalar_ge(builder, {interpreter.graph_value(number), builder.constant(int64_t{0})});
  return interpreter.follow(fits, Object::borrow(Py_True), -1);
}

/// Python's function for `&`, `|` and `^`; null: another operator.
const char* bitwise_function(Operator op) {
  return op == Operator::BitAnd   ? "operator.and_"
         : op == Operator::BitOr  ? "operator.or_"
         : op == Operator::BitXor ? "operator.xor"
                                  : nullptr;
}

/// A shift: an int times or divided by a power of two. The exponent is guarded not to be negative;
/// a power of more than 64 bits ends the run.
Value shifted(Interpreter& interpreter, Operator op, const Value& left, const Value& right,
              const Object& example) {
  graph::Builder& builder = interpreter.builder();
  graph::Value* count = interpreter.graph_value(right);
  if (!assume_not_negative(interpreter, right)) return nullptr;
  // Exact as a float, which an int must not be: its power is one only if the exponent says so.
  const Value power = convert_number(
      interpreter, interpreter.number(op::scalar_pow(builder, {builder.constant(2.0), count})),
      Type::Kind::i64);
  const graph::OpDef& moves = op == Operator::LShift ? op::scalar_mul : op::scalar_floordiv;
  return interpreter.number(
      moves(builder, {interpreter.graph_value(left), interpreter.graph_value(power)}), example);
}

Value with_example(Value number, const Object& example) {
  TORCHJANUS_CHECK(as<Number>(number) != nullptr, "operators: an argument that is no number");
  as<Number>(number)->example = example;
  return number;
}

/// The exception that an operation may raise depending on its numbers; null: none.
PyObject* raised_by(Operator op) {
  switch (op) {
    case Operator::Div:
    case Operator::FloorDiv:
    case Operator::Mod:
    case Operator::Pow:
      return PyExc_ZeroDivisionError;
    case Operator::LShift:
    case Operator::RShift:
      return PyExc_ValueError;
    default:
      return nullptr;
  }
}

/// A flag: whether the operation raises for these numbers.
Value raising_operands(Interpreter& interpreter, Operator op, const Value& left,
                       const Value& right) {
  const auto is = [&](syntax::CompareOperator relation, const Value& number) {
    return compare(interpreter, relation, number, interpreter.integer(0));
  };
  if (raised_by(op) == PyExc_ValueError) return is(syntax::CompareOperator::Lt, right);
  if (op != Operator::Pow) return is(syntax::CompareOperator::Eq, right);
  return both_flags(interpreter, is(syntax::CompareOperator::Eq, left),
                    is(syntax::CompareOperator::Lt, right));
}

/// The result for the numbers of the call at hand; null where these are not known.
Object example_of_binary(Interpreter& interpreter, Operator op, const Value& left,
                         const Value& right) {
  const Object left_example = example_of(left), right_example = example_of(right);
  if (!left_example || !right_example) return {};
  Object example = Object::steal(apply_python(op, left_example.get(), right_example.get()));
  PyObject* const type = raised_by(op);
  const bool raises = !example && type != nullptr && PyErr_ExceptionMatches(type) != 0;
  PyErr_Clear();
  if (type != nullptr && is_awaited(interpreter, type))
    follow_raising(interpreter, raising_operands(interpreter, op, left, right), raises);
  if (example) return example;
  return interpreter.must(apply_python(op, left_example.get(), right_example.get()));
}

}  // namespace

Value number_binary(Interpreter& interpreter, Operator op, const Value& left, const Value& right) {
  const Object example = example_of_binary(interpreter, op, left, right);
  if (std::optional<Dim> dim = dim_arithmetic(op, left, right)) {
    if (may_divide_by_zero(op, right))
      (*scalar_operator(op))(interpreter.builder(),
                             {interpreter.graph_value(left), interpreter.graph_value(right)});
    return interpreter.dimension(*dim);
  }
  const bool shifts = op == Operator::LShift || op == Operator::RShift;
  if (shifts && number_kind(left) == Type::Kind::i64 && number_kind(right) == Type::Kind::i64)
    return shifted(interpreter, op, left, right, example);
  if (const char* function = bitwise_function(op); function != nullptr &&
                                                   number_kind(left) != Type::Kind::f64 &&
                                                   number_kind(right) != Type::Kind::f64) {
    const bool flags =
        number_kind(left) == Type::Kind::boolean && number_kind(right) == Type::Kind::boolean;
    return with_example(call_python(interpreter, function, {{left, right}, {}},
                                    flags ? Type::Kind::boolean : Type::Kind::i64),
                        example);
  }
  const graph::OpDef* computes = scalar_operator(op);
  if (computes == nullptr)
    interpreter.refuse(ReasonCode::expression, cat("a number ", syntax::symbol(op), " a number"));
  if (op == Operator::Pow && number_kind(left) != Type::Kind::f64 &&
      number_kind(right) != Type::Kind::f64) {
    // An int to a negative power is a float: the type must not depend on the value.
    const auto* exponent = as<Known>(right);
    const std::optional<int64_t> power =
        exponent == nullptr ? 0 : python::int64_of(exponent->object.get());
    if (power && *power < 0) {
      const Value base = convert_number(interpreter, left, Type::Kind::f64);
      return with_example(number_binary(interpreter, op, base, right), example);
    }
    if (!power || (exponent == nullptr && !assume_not_negative(interpreter, right)))
      interpreter.refuse(ReasonCode::dynamic_value, "the type of a power of ints");
    if (exponent == nullptr)
      return with_example(
          call_python(interpreter, "operator.pow", {{left, right}, {}}, Type::Kind::i64), example);
  }
  graph::Value* value = (*computes)(
      interpreter.builder(), {interpreter.graph_value(left), interpreter.graph_value(right)});
  return interpreter.number(value, example);
}

}  // namespace janus::frontend
