// What Python's operators mean, by the kinds of their operands: constants are computed by CPython
// now, numbers become scalar operators or dimension arithmetic, tensors torch's operators.
#include "frontend/operators.h"

#include <algorithm>
#include <cmath>

#include "frontend/attributes.h"
#include "frontend/callables.h"
#include "frontend/calls.h"
#include "frontend/containers.h"
#include "frontend/expressions.h"
#include "frontend/instances.h"
#include "frontend/merge.h"
#include "frontend/optional.h"
#include "frontend/python_calls.h"
#include "frontend/rearranged.h"
#include "frontend/run_time.h"
#include "frontend/strings.h"
#include "frontend/tensor.h"
#include "python/integer.h"

namespace janus::frontend {

using graph::Dim;
using graph::Type;
using python::Object;
using syntax::CompareOperator;
using syntax::Operator;
using syntax::UnaryOperator;

namespace {

bool is_constant(const Value& value) {
  const auto* known = as<Known>(value);
  return known != nullptr && is_immutable_constant(known->object.get());
}

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

int python_comparison(CompareOperator op) {
  switch (op) {
    case CompareOperator::Eq:
      return Py_EQ;
    case CompareOperator::NotEq:
      return Py_NE;
    case CompareOperator::Lt:
      return Py_LT;
    case CompareOperator::LtE:
      return Py_LE;
    case CompareOperator::Gt:
      return Py_GT;
    case CompareOperator::GtE:
      return Py_GE;
    default:
      return -1;
  }
}

// --- numbers ------------------------------------------------------------------------------------

Type::Kind number_kind(const Value& value) {
  if (const auto* number = as<Number>(value)) return number->type;
  PyObject* object = as<Known>(value)->object.get();
  if (PyBool_Check(object)) return Type::Kind::boolean;
  return PyFloat_CheckExact(object) ? Type::Kind::f64 : Type::Kind::i64;
}

/// What the number is in the call at hand; null if only the run knows.
Object example_of(const Value& value) {
  if (const auto* number = as<Number>(value)) return number->example;
  return as<Known>(value)->object;
}

std::optional<Dim> dim_of(const Value& value) {
  if (const auto* number = as<Number>(value)) return number->dim;
  PyObject* object = as<Known>(value)->object.get();
  if (!PyLong_CheckExact(object)) return std::nullopt;
  return python::int64_of(object);
}

const char* scalar_operator(Operator op) {
  switch (op) {
    case Operator::Add:
      return "scalar_add";
    case Operator::Sub:
      return "scalar_sub";
    case Operator::Mult:
      return "scalar_mul";
    case Operator::Div:
      return "scalar_truediv";
    case Operator::Mod:
      return "scalar_mod";
    case Operator::FloorDiv:
      return "scalar_floordiv";
    case Operator::Pow:
      return "scalar_pow";
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

/// A quotient of dimensions is computed only where something has such a size: that it raises has to
/// be seen where the program divides.
bool may_divide_by_zero(Operator op, const Value& divisor) {
  if (op != Operator::FloorDiv && op != Operator::Mod) return false;
  return dim_of(divisor)->lower_bound().value_or(0) < 1 &&
         dim_of(divisor)->upper_bound().value_or(0) >= 0;
}

/// That a number is none below zero is an assumption of the run.
bool assume_not_negative(Interpreter& interpreter, const Value& number) {
  graph::Builder& builder = interpreter.builder();
  graph::Value* fits = operator_named("scalar_ge")(
      builder, {interpreter.graph_value(number), builder.constant(int64_t{0})});
  return interpreter.follow(fits, Object::borrow(Py_True), -1);
}

/// Python's function for `&`, `|` and `^`; null: another operator.
const char* bitwise_function(Operator op) {
  return op == Operator::BitAnd   ? "operator.and_"
         : op == Operator::BitOr  ? "operator.or_"
         : op == Operator::BitXor ? "operator.xor"
                                  : nullptr;
}

/// An int times or by a power of two, whose exponent is not negative; a power of more than 64 bits
/// ends the run.
Value shifted(Interpreter& interpreter, Operator op, const Value& left, const Value& right,
              const Object& example) {
  graph::Builder& builder = interpreter.builder();
  graph::Value* count = interpreter.graph_value(right);
  if (!assume_not_negative(interpreter, right)) return nullptr;
  // Exact as a float, which an int must not be: its power is one only if the exponent says so.
  const Value power = convert_number(
      interpreter,
      interpreter.number(operator_named("scalar_pow")(builder, {builder.constant(2.0), count})),
      Type::Kind::i64);
  const char* name = op == Operator::LShift ? "scalar_mul" : "scalar_floordiv";
  return interpreter.number(operator_named(name)(builder, {interpreter.graph_value(left),
                                                           interpreter.graph_value(power)}),
                            example);
}

Value with_example(Value number, const Object& example) {
  TORCHJANUS_CHECK(as<Number>(number) != nullptr, "operators: an argument that is no number");
  as<Number>(number)->example = example;
  return number;
}

Value number_binary(Interpreter& interpreter, Operator op, const Value& left, const Value& right) {
  Object example;
  Object left_example = example_of(left), right_example = example_of(right);
  if (left_example && right_example)
    example = interpreter.must(apply_python(op, left_example.get(), right_example.get()));
  if (std::optional<Dim> dim = dim_arithmetic(op, left, right)) {
    if (may_divide_by_zero(op, right))
      operator_named(scalar_operator(op))(
          interpreter.builder(), {interpreter.graph_value(left), interpreter.graph_value(right)});
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
  const char* name = scalar_operator(op);
  if (name == nullptr)
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
  graph::Value* value = operator_named(name)(
      interpreter.builder(), {interpreter.graph_value(left), interpreter.graph_value(right)});
  return interpreter.number(value, example);
}

Value number_compare(Interpreter& interpreter, CompareOperator op, const Value& left,
                     const Value& right) {
  int how = python_comparison(op);
  Object example, left_example = example_of(left), right_example = example_of(right);
  if (left_example && right_example)
    example = interpreter.must(PyObject_RichCompare(left_example.get(), right_example.get(), how));
  std::optional<Dim> a = dim_of(left), b = dim_of(right);
  if (a && b) {
    // What holds for all values of the symbols needs no guard.
    const auto decided = [&](int64_t difference) {
      const Object zero = python::integer(0), sign = python::integer(difference);
      return interpreter.constant(Object::steal(PyObject_RichCompare(sign.get(), zero.get(), how)));
    };
    const Dim difference = *a - *b;
    if (difference.is_constant()) return decided(difference.value());
    if (difference.lower_bound().value_or(0) > 0) return decided(1);
    if ((*b - *a).lower_bound().value_or(0) > 0) return decided(-1);
    if (op == CompareOperator::Eq && example.is(Py_True)) {
      interpreter.assume_equal(*a, *b);
      return interpreter.boolean(true);
    }
    if (op == CompareOperator::NotEq && example.is(Py_False)) {
      interpreter.assume_equal(*a, *b);
      return interpreter.boolean(false);
    }
  }
  static constexpr const char* names[] = {"scalar_lt", "scalar_le", "scalar_eq",
                                          "scalar_ne", "scalar_gt", "scalar_ge"};
  graph::Value* value = operator_named(names[how])(
      interpreter.builder(), {interpreter.graph_value(left), interpreter.graph_value(right)});
  return interpreter.number(value, example);
}

// --- tensors ------------------------------------------------------------------------------------

Value tensor_call(Interpreter& interpreter, std::string_view name, std::vector<Value> operands) {
  CallArguments arguments;
  arguments.positional = std::move(operands);
  return call_named(interpreter, name, arguments);
}

const char* tensor_operator(Operator op) {
  switch (op) {
    case Operator::Add:
      return "Tensor.add";
    case Operator::Sub:
      return "Tensor.sub";
    case Operator::Mult:
      return "Tensor.mul";
    case Operator::MatMult:
      return "Tensor.matmul";
    case Operator::Div:
      return "Tensor.div";
    case Operator::Mod:
      return "Tensor.remainder";
    case Operator::Pow:
      return "Tensor.pow";
    case Operator::LShift:
      return "Tensor.bitwise_left_shift";
    case Operator::RShift:
      return "Tensor.bitwise_right_shift";
    case Operator::BitOr:
      return "Tensor.bitwise_or";
    case Operator::BitXor:
      return "Tensor.bitwise_xor";
    case Operator::BitAnd:
      return "Tensor.bitwise_and";
    case Operator::FloorDiv:
      return "Tensor.floor_divide";
  }
  return "";
}

/// number op tensor: what Tensor.__r<op>__ does.
Value reflected(Interpreter& interpreter, Operator op, const Value& number, const Value& tensor) {
  switch (op) {
    case Operator::Sub:
      return tensor_call(interpreter, "rsub", {tensor, number});
    case Operator::Div: {
      Value inverse = tensor_call(interpreter, "Tensor.reciprocal", {tensor});
      return tensor_call(interpreter, "Tensor.mul", {inverse, number});
    }
    case Operator::Pow:
      return tensor_call(interpreter, "pow", {number, tensor});
    case Operator::FloorDiv:
      return tensor_call(interpreter, "floor_divide", {number, tensor});
    case Operator::Mod:
      return tensor_call(interpreter, "remainder", {number, tensor});
    case Operator::Add:
    case Operator::Mult:
    case Operator::BitOr:
    case Operator::BitXor:
    case Operator::BitAnd:
      return tensor_call(interpreter, tensor_operator(op), {tensor, number});
    default:
      interpreter.refuse(ReasonCode::expression, cat("a number ", syntax::symbol(op), " a tensor"));
  }
}

Value tensor_binary(Interpreter& interpreter, Operator op, const Value& left, const Value& right) {
  bool fits = (as<Tensor>(left) != nullptr || is_number(left)) &&
              (as<Tensor>(right) != nullptr || is_number(right));
  if (!fits)
    interpreter.refuse(ReasonCode::expression, cat("a tensor ", syntax::symbol(op), " an object"));
  if (as<Tensor>(left) == nullptr) return reflected(interpreter, op, left, right);
  return tensor_call(interpreter, tensor_operator(op), {left, right});
}

Value tensor_compare(Interpreter& interpreter, CompareOperator op, const Value& left,
                     const Value& right) {
  static constexpr const char* names[] = {"Tensor.lt", "Tensor.le", "Tensor.eq",
                                          "Tensor.ne", "Tensor.gt", "Tensor.ge"};
  static constexpr int swapped[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};
  int how = python_comparison(op);
  bool fits = (as<Tensor>(left) != nullptr || is_number(left)) &&
              (as<Tensor>(right) != nullptr || is_number(right));
  if (!fits) {
    // A tensor equals no object of another kind.
    if (how == Py_EQ || how == Py_NE) return interpreter.boolean(how == Py_NE);
    interpreter.refuse(ReasonCode::would_raise, "TypeError: comparison with a tensor");
  }
  if (as<Tensor>(left) == nullptr)
    return tensor_call(interpreter, names[swapped[how]], {right, left});
  return tensor_call(interpreter, names[how], {left, right});
}

// --- containers and objects ---------------------------------------------------------------------

/// A torch.Size, which sums and products keep their class of.
bool is_size(const Sequence& sequence) {
  return sequence.type.is(reinterpret_cast<PyObject*>(size_class()));
}

Value repeated(Interpreter& interpreter, const Sequence& sequence, const Value& count) {
  int64_t times = PyLong_AsLongLong(folded(interpreter, count).get());
  if (times == -1 && PyErr_Occurred() != nullptr) interpreter.refuse_raised();
  auto result = std::make_shared<Sequence>(sequence.is_list);
  if (is_size(sequence)) result->type = sequence.type;
  for (int64_t i = 0; i < times; ++i) {
    result->elements.insert(result->elements.end(), sequence.elements.begin(),
                            sequence.elements.end());
    if (result->elements.size() > static_cast<size_t>(Interpreter::most_rounds()))
      interpreter.refuse(ReasonCode::limit, "a container of too many elements");
  }
  return result;
}

Value sequence_binary(Interpreter& interpreter, Operator op, const Value& left,
                      const Value& right) {
  const auto* a = as<Sequence>(left);
  const auto* b = as<Sequence>(right);
  if (op == Operator::Mult && a != nullptr && is_number(right) && !(a->is_list && a->type))
    return repeated(interpreter, *a, right);
  if (op == Operator::Mult && b != nullptr && is_number(left) && !(b->is_list && b->type))
    return repeated(interpreter, *b, left);
  const bool is_typed =
      (a != nullptr && a->is_list && a->type) || (b != nullptr && b->is_list && b->type);  // deques
  if (!is_typed && op == Operator::Add && a != nullptr && b != nullptr &&
      a->is_list == b->is_list) {
    auto result = std::make_shared<Sequence>(a->is_list);
    for (const auto& [side, other] : {std::pair(a, b), std::pair(b, a)}) {
      if (!is_size(*side)) continue;
      for (const Value& element : other->elements)
        if (class_of(element) != &PyLong_Type)
          interpreter.refuse(ReasonCode::expression, "a torch.Size with other than ints");
      result->type = side->type;
    }
    if (rolled(left) != nullptr || rolled(right) != nullptr) {
      result->elements = ElementList(joined(interpreter, a->elements, b->elements));
      return result;
    }
    result->elements = a->elements;
    result->elements.insert(result->elements.end(), b->elements.begin(), b->elements.end());
    return result;
  }
  interpreter.refuse(ReasonCode::expression, cat("containers with ", syntax::symbol(op)));
}

const char* dunder(Operator op) {
  switch (op) {
    case Operator::Add:
      return "add__";
    case Operator::Sub:
      return "sub__";
    case Operator::Mult:
      return "mul__";
    case Operator::MatMult:
      return "matmul__";
    case Operator::Div:
      return "truediv__";
    case Operator::Mod:
      return "mod__";
    case Operator::Pow:
      return "pow__";
    case Operator::LShift:
      return "lshift__";
    case Operator::RShift:
      return "rshift__";
    case Operator::BitOr:
      return "or__";
    case Operator::BitXor:
      return "xor__";
    case Operator::BitAnd:
      return "and__";
    case Operator::FloorDiv:
      return "floordiv__";
  }
  return "";
}

/// Operators that a user's class defines in Python.
Value object_binary(Interpreter& interpreter, Operator op, const Value& left, const Value& right) {
  auto attempt = [&](const Value& self, const Value& other, const char* prefix) -> Value {
    bool object =
        as<Instance>(self) != nullptr || (as<Known>(self) != nullptr && !is_constant(self));
    if (!object) return nullptr;
    Value method = special_method(interpreter, self, (std::string(prefix) + dunder(op)).c_str());
    if (method == nullptr) return nullptr;
    CallArguments arguments;
    arguments.positional = {other};
    Value result = call(interpreter, method, arguments);
    const auto* outcome = as<Known>(result);
    return outcome != nullptr && outcome->object.is(Py_NotImplemented) ? nullptr : result;
  };
  if (Value result = attempt(left, right, "__")) return result;
  if (Value result = attempt(right, left, "__r")) return result;
  interpreter.refuse(ReasonCode::expression, cat("objects with ", syntax::symbol(op)));
}

bool is_string(const Value& value) {
  if (const auto* deferred = as<Deferred>(value))
    return deferred->type.is(reinterpret_cast<PyObject*>(&PyUnicode_Type));
  const auto* known = as<Known>(value);
  return known != nullptr && PyUnicode_CheckExact(known->object.get());
}

Value string_binary(Interpreter& interpreter, Operator op, const Value& left, const Value& right) {
  bool concatenates = op == Operator::Add && is_string(left) && is_string(right);
  bool formats = op == Operator::Mod && is_string(left);
  bool repeats = op == Operator::Mult && kind_of_number(right) == Type::Kind::i64;
  if (!concatenates && !formats && !repeats)
    interpreter.refuse(ReasonCode::expression, cat("a string ", syntax::symbol(op)));
  CallArguments arguments;
  arguments.positional = {left, right};
  static PyObject* const add = imported("operator.add");
  static PyObject* const mod = imported("operator.mod");
  static PyObject* const mul = imported("operator.mul");
  PyObject* const function = concatenates ? add : formats ? mod : mul;
  return defer(interpreter, Object::borrow(function), arguments, &PyUnicode_Type);
}

}  // namespace

bool is_flag(const Value& value) {
  const auto* number = as<Number>(value);
  return number != nullptr && number->type == Type::Kind::boolean;
}

bool is_number(const Value& value) {
  if (as<Number>(value) != nullptr) return true;
  const auto* known = as<Known>(value);
  return known != nullptr &&
         (PyLong_CheckExact(known->object.get()) || PyFloat_CheckExact(known->object.get()) ||
          PyBool_Check(known->object.get()));
}

namespace {

/// The members of an enumeration of ints compute as these.
Value plain_number(Interpreter& interpreter, const Value& value) {
  expect_settled(value);
  const auto* known = as<Known>(value);
  if (known == nullptr || !PyLong_Check(known->object.get()) || is_number(value)) return value;
  PyTypeObject* type = Py_TYPE(known->object.get());
  if (!is_enumeration(type) || type->tp_as_number->nb_add != PyLong_Type.tp_as_number->nb_add)
    return value;
  interpreter.assume_identity(*known);
  return interpreter.constant(interpreter.must(PyNumber_Long(known->object.get())));
}

/// left | right of dicts
Value dictionary_union(Interpreter& interpreter, Operator op, const Value& left,
                       const Value& right) {
  const auto *a = as<Dictionary>(left), *b = as<Dictionary>(right);
  if (op != Operator::BitOr || a == nullptr || b == nullptr || a->type || b->type) return nullptr;
  auto result = std::make_shared<Dictionary>();
  result->items = a->items;
  for (const auto& [key, value] : b->items) change_item(interpreter, *result, key, value);
  return result;
}

/// What `left op= right` calls; null if left has no such method.
Value call_in_place(Interpreter& interpreter, Operator op, const Value& left, const Value& right) {
  if (as<Known>(left) == nullptr && as<Instance>(left) == nullptr) return nullptr;
  Value method = special_method(interpreter, left, (std::string("__i") + dunder(op)).c_str());
  if (method == nullptr) return nullptr;
  CallArguments arguments;
  arguments.positional = {right};
  Value result = call(interpreter, method, arguments);
  const auto* outcome = as<Known>(result);
  return outcome != nullptr && outcome->object.is(Py_NotImplemented) ? nullptr : result;
}

}  // namespace

Value binary(Interpreter& interpreter, Operator op, const Value& given_left,
             const Value& given_right) {
  const auto use = [&](const Value& a, const Value& b) { return binary(interpreter, op, a, b); };
  if (Value both = for_both(interpreter, given_left, given_right, use)) return both;
  const Value left = plain_number(interpreter, given_left);
  const Value right = plain_number(interpreter, given_right);
  if (is_constant(left) && is_constant(right))
    return interpreter.constant(interpreter.must(
        apply_python(op, as<Known>(left)->object.get(), as<Known>(right)->object.get())));
  if (as<Tensor>(left) != nullptr || as<Tensor>(right) != nullptr)
    return tensor_binary(interpreter, op, left, right);
  if (is_number(left) && is_number(right)) return number_binary(interpreter, op, left, right);
  if (is_string(left)) return string_binary(interpreter, op, left, right);
  if (is_string(right) && op == Operator::Mult && is_number(left))
    return string_binary(interpreter, op, right, left);
  if (Value result = set_binary(interpreter, op, left, right)) return result;
  Value a = opened(interpreter, left), b = opened(interpreter, right);
  if (Value result = dictionary_union(interpreter, op, a, b)) return result;
  if (as<Sequence>(a) != nullptr || as<Sequence>(b) != nullptr)
    return sequence_binary(interpreter, op, a, b);
  return object_binary(interpreter, op, left, right);
}

Value binary_in_place(Interpreter& interpreter, Operator op, const Value& left,
                      const Value& right) {
  const auto use = [&](const Value& a, const Value& b) {
    return binary_in_place(interpreter, op, a, b);
  };
  if (Value both = for_both(interpreter, left, right, use)) return both;
  if (as<Tensor>(left) != nullptr) {
    // `tensor @= x` and shifts make a new tensor; the others write in place.
    if (op == Operator::MatMult) return binary(interpreter, op, left, right);
    if (as<Tensor>(right) == nullptr && !is_number(right))
      interpreter.refuse(ReasonCode::expression, "in-place operator of a tensor and an object");
    return tensor_call(interpreter, std::string(tensor_operator(op)) + "_", {left, right});
  }
  const auto* known = as<Known>(left);
  const auto* list = as<Sequence>(left);
  const bool is_list =
      list != nullptr ? list->is_list : known != nullptr && PyList_CheckExact(known->object.get());
  const bool is_dict = as<Dictionary>(left) != nullptr ||
                       (known != nullptr && PyDict_CheckExact(known->object.get()));
  if ((is_list && op == Operator::Add) || (is_dict && op == Operator::BitOr)) {
    CallArguments arguments;
    arguments.positional = {right};
    call(interpreter, attribute(interpreter, left, is_list ? "extend" : "update"), arguments);
    return left;
  }
  if (Value changed = set_binary_in_place(interpreter, op, left, right)) return changed;
  if (known != nullptr && !is_immutable_constant(known->object.get()) &&
      !is_enumeration(Py_TYPE(known->object.get()))) {
    if (Value changed = call_in_place(interpreter, op, left, right)) return changed;
  }
  if (as<Instance>(left) != nullptr)
    if (Value changed = call_in_place(interpreter, op, left, right)) return changed;
  return binary(interpreter, op, left, right);
}

Value unary(Interpreter& interpreter, UnaryOperator op, const Value& operand) {
  if (Value both = for_both(interpreter, operand,
                            [&](const Value& one) { return unary(interpreter, op, one); }))
    return both;
  if (op == UnaryOperator::Not) {
    if (as<Number>(operand) != nullptr) {
      Value flag = convert_number(interpreter, operand, Type::Kind::boolean);
      if (as<Known>(flag) != nullptr) return interpreter.boolean(!truth(interpreter, flag, -1));
      Object example = as<Number>(flag)->example;
      if (example) example = Object::borrow(example.is(Py_True) ? Py_False : Py_True);
      return interpreter.number(
          operator_named("scalar_not")(interpreter.builder(), {interpreter.graph_value(flag)}),
          example);
    }
    return interpreter.boolean(!truth(interpreter, operand, -1));
  }
  if (is_constant(operand)) {
    PyObject* object = as<Known>(operand)->object.get();
    return interpreter.constant(
        interpreter.must(op == UnaryOperator::USub   ? PyNumber_Negative(object)
                         : op == UnaryOperator::UAdd ? PyNumber_Positive(object)
                                                     : PyNumber_Invert(object)));
  }
  if (as<Tensor>(operand) != nullptr) {
    if (op == UnaryOperator::UAdd) return tensor_call(interpreter, "Tensor.positive", {operand});
    return tensor_call(interpreter, op == UnaryOperator::USub ? "Tensor.neg" : "Tensor.bitwise_not",
                       {operand});
  }
  if (const auto* number = as<Number>(operand)) {
    if (op == UnaryOperator::USub) {
      if (number->dim) return interpreter.dimension(Dim(0) - *number->dim);
      Object example;
      if (number->example) example = interpreter.must(PyNumber_Negative(number->example.get()));
      return interpreter.number(
          operator_named("scalar_neg")(interpreter.builder(), {interpreter.graph_value(operand)}),
          example);
    }
    if (op == UnaryOperator::UAdd && number->type != Type::Kind::boolean) return operand;
    if (op == UnaryOperator::Invert && number->type == Type::Kind::i64)
      return binary(interpreter, Operator::Sub, interpreter.integer(-1), operand);
  }
  const char* name = op == UnaryOperator::USub   ? "__neg__"
                     : op == UnaryOperator::UAdd ? "__pos__"
                                                 : "__invert__";
  if (as<Known>(operand) != nullptr || as<Instance>(operand) != nullptr)
    if (Value method = special_method(interpreter, operand, name))
      return call(interpreter, method, {});
  interpreter.refuse(ReasonCode::expression, cat("the operator ", syntax::symbol(op)));
}

// --- comparison ---------------------------------------------------------------------------------

namespace {

/// Whether a branch, loop or list decides if the two are one object.
bool may_be_one(const Tensor& a, const Tensor& b) {
  const auto leads_to = [](const Tensor& from, const Tensor& to) {
    return std::any_of(
        from.possible_aliases.begin(), from.possible_aliases.end(),
        [&](const PossibleAlias& alias) {
          auto other = alias.tensor.lock();
          if (other == nullptr) return false;
          return other.get() == &to ||
                 std::any_of(to.possible_aliases.begin(), to.possible_aliases.end(),
                             [&](const PossibleAlias& its) { return its.tensor.lock() == other; });
        });
  };
  return leads_to(a, b) || leads_to(b, a);
}

}  // namespace

namespace {

/// Whether Python has one object only for all ints of that value.
bool is_small_int(PyObject* object) {
  if (!PyLong_CheckExact(object)) return false;
  const std::optional<int64_t> number = python::int64_of(object);
  return number && *number >= -5 && *number <= 256;
}

/// `left is right` or `left is not right` of numbers of which only the run knows one, where equal
/// ones are one object: flags, and small ints. Null for all else.
Value number_identity(Interpreter& interpreter, CompareOperator op, const Value& left,
                      const Value& right) {
  const auto kind = kind_of_number(left);
  if (!kind || kind != kind_of_number(right) || left == right) return nullptr;
  if (as<Number>(left) == nullptr && as<Number>(right) == nullptr) return nullptr;
  const auto is_small = [](const Value& value) {
    return as<Known>(value) != nullptr && is_small_int(known_object(value));
  };
  if (*kind != Type::Kind::boolean && !is_small(left) && !is_small(right)) return nullptr;
  return compare(interpreter,
                 op == CompareOperator::Is ? CompareOperator::Eq : CompareOperator::NotEq, left,
                 right);
}

}  // namespace

bool identical(Interpreter& interpreter, const Value& left, const Value& right) {
  if (left == right) return true;
  expect_settled(left);
  expect_settled(right);
  const EntryObject one = entry_object_of(left), other = entry_object_of(right);
  if (const auto *first = as<Tensor>(left), *second = as<Tensor>(right);
      first != nullptr && second != nullptr) {
    if (may_be_one(*first, *second))
      interpreter.refuse(ReasonCode::expression, "the identity of a tensor that may be another");
    if (one.object != nullptr && other.object != nullptr)
      return interpreter.identities.are_one(interpreter, one, other);
  }
  const auto* a = as<Known>(left);
  const auto* b = as<Known>(right);
  if (a != nullptr && b != nullptr) {
    bool same = a->object.is(b->object.get());
    // Whether equal numbers and strings are one object is an accident of the interpreter.
    auto singleton = [](PyObject* object) {
      return object == Py_None || object == Py_True || object == Py_False ||
             object == Py_Ellipsis || object == Py_NotImplemented;
    };
    if (singleton(a->object.get()) || singleton(b->object.get())) return same;
    if (is_immutable_constant(a->object.get()) && is_immutable_constant(b->object.get())) {
      if (same && a->source == b->source) return true;
      if (!same_constant(a->object.get(), b->object.get())) return false;
      if (is_small_int(a->object.get())) return true;
      interpreter.refuse(ReasonCode::expression, "the identity of equal constants");
    }
    if (one.object != nullptr && other.object != nullptr)
      return interpreter.identities.are_one(interpreter, one, other);
    interpreter.assume_identity(*a);
    interpreter.assume_identity(*b);
    return same;
  }
  // A known object is no object that the run makes; numbers may be any object of their class.
  if (as<Number>(left) != nullptr || as<Number>(right) != nullptr) {
    const PyTypeObject *one = class_of(left), *other = class_of(right);
    if (one != nullptr && other != nullptr && one != other) return false;
    interpreter.refuse(ReasonCode::expression, "the identity of a number");
  }
  // A container of the real world and its opened twin are one object.
  auto source_of = [](const Value& value) -> const Source* {
    if (const auto* sequence = as<Sequence>(value)) return sequence->source;
    if (const auto* dictionary = as<Dictionary>(value)) return dictionary->source;
    if (const auto* known = as<Known>(value)) return known->source;
    return nullptr;
  };
  if (source_of(left) != nullptr && source_of(left) == source_of(right)) return true;
  for (const Value& side : {left, right})
    if (const auto* tensor = as<Tensor>(side); tensor != nullptr && tensor->is_borrowed)
      interpreter.refuse(ReasonCode::expression, "the identity of a tensor met at run time");
  return false;
}

namespace {

bool is_known_nan(const Value& value) {
  PyObject* const object = known_object(value);
  return object != nullptr && PyFloat_Check(object) && std::isnan(PyFloat_AS_DOUBLE(object));
}

/// Whether two elements are equal: a flag that may vary for numbers only.
Value equal_elements(Interpreter& interpreter, const Value& left, const Value& right) {
  if (left == right) return interpreter.boolean(true);
  // NaN equals itself if it is the same object.
  const auto *first = as<Number>(left), *second = as<Number>(right);
  if (first != nullptr && second != nullptr && first->source != nullptr &&
      first->type == Type::Kind::f64 && second->type == Type::Kind::f64) {
    if (first->source == second->source) return interpreter.boolean(true);
    if (second->source != nullptr)
      interpreter.refuse(ReasonCode::dynamic_value, "whether two floats are one object");
  }
  if (is_known_nan(left) && is_known_nan(right))
    interpreter.refuse(ReasonCode::dynamic_value, "whether two floats are one object");
  Value same = compare(interpreter, CompareOperator::Eq, left, right);
  return is_flag(same) ? same : interpreter.boolean(truth(interpreter, same, -1));
}

/// The order of two sequences is that of the first elements that differ, or of their lengths.
Value sequence_order(Interpreter& interpreter, CompareOperator op, const Sequence& left,
                     const Sequence& right) {
  const auto comparable = [](const Value& element) {
    return is_number(element) || is_string(element);
  };
  const auto &first = left.elements, &second = right.elements;
  const size_t count = std::min(first.size(), second.size());
  Value result = compare(interpreter, op, interpreter.integer(static_cast<int64_t>(first.size())),
                         interpreter.integer(static_cast<int64_t>(second.size())));
  for (size_t i = count; i-- > 0;) {
    if (!comparable(first[i]) || !comparable(second[i]))
      interpreter.refuse(ReasonCode::expression, "the order of containers");
    const Value same = equal_elements(interpreter, first[i], second[i]);
    const Value differ = flag_value(interpreter, negated(interpreter, truth_of(interpreter, same)));
    result = either_flag(
        interpreter, both_flags(interpreter, differ, compare(interpreter, op, first[i], second[i])),
        both_flags(interpreter, same, result));
  }
  return result;
}

Value sequence_compare(Interpreter& interpreter, CompareOperator op, const Sequence& left,
                       const Sequence& right) {
  const bool rolls = left.elements.rolled() != nullptr || right.elements.rolled() != nullptr;
  if (op != CompareOperator::Eq && op != CompareOperator::NotEq) {
    if (left.is_list != right.is_list || rolls)
      interpreter.refuse(ReasonCode::expression, "the order of containers");
    return sequence_order(interpreter, op, left, right);
  }
  const bool typed_lists = left.is_list && left.type.get() != right.type.get();
  Value equal = interpreter.boolean(left.is_list == right.is_list && !typed_lists &&
                                    left.elements.size() == right.elements.size());
  for (size_t i = 0; known_object(equal) != Py_False && i < left.elements.size(); ++i)
    equal = both_flags(interpreter, equal,
                       equal_elements(interpreter, left.elements[i], right.elements[i]));
  if (op == CompareOperator::Eq) return equal;
  return flag_value(interpreter, negated(interpreter, truth_of(interpreter, equal)));
}

Value object_compare(Interpreter& interpreter, CompareOperator op, const Known& left,
                     const Known& right, const Value& left_value, const Value& right_value) {
  PyObject* a = left.object.get();
  PyObject* b = right.object.get();
  // Objects whose class compares by identity, or whose comparison only computes.
  auto plain = [](PyObject* object) {
    return is_immutable_constant(object) || is_torch_constant(object) ||
           Py_TYPE(object)->tp_richcompare == PyBaseObject_Type.tp_richcompare ||
           PyType_Check(object);
  };
  const EntryObject one = entry_object_of(left_value), other = entry_object_of(right_value);
  const bool is_equality = op == CompareOperator::Eq || op == CompareOperator::NotEq;
  if (plain(a) && plain(b) && is_equality && one.object != nullptr && other.object != nullptr)
    return interpreter.boolean(interpreter.identities.are_one(interpreter, one, other) ==
                               (op == CompareOperator::Eq));
  if (plain(a) && plain(b)) {
    interpreter.assume_identity(left);
    interpreter.assume_identity(right);
    return interpreter.constant(
        interpreter.must(PyObject_RichCompare(a, b, python_comparison(op))));
  }
  return compare_instances(interpreter, op, left_value, right_value);
}

}  // namespace

namespace {

/// Python's own classes whose objects equal none of another such kind: 0 for what is none of them.
int kind_for_equality(const Value& value) {
  const PyTypeObject* type = class_of(value);
  if (type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type) return 1;
  const PyTypeObject* kinds[] = {&PyUnicode_Type, &PyBytes_Type, &PyTuple_Type,
                                 &PyList_Type,    &PyDict_Type,  Py_TYPE(Py_None)};
  const auto place = std::ranges::find(kinds, type);
  return place == std::end(kinds) ? 0 : 2 + static_cast<int>(place - std::begin(kinds));
}

bool of_kinds_that_never_equal(const Value& left, const Value& right) {
  const int first = kind_for_equality(left), second = kind_for_equality(right);
  return first != 0 && second != 0 && first != second;
}

Value compare_run_time(Interpreter& interpreter, CompareOperator op, const Value& left,
                       const Value& right) {
  if (op == CompareOperator::Eq || op == CompareOperator::NotEq) {
    const bool first = as<RuntimeObject>(left) != nullptr;
    Value equal = run_time_equality(interpreter, *as<RuntimeObject>(first ? left : right),
                                    first ? right : left);
    if (equal != nullptr && op == CompareOperator::Eq) return equal;
    if (equal != nullptr)
      return interpreter.number(interpreter.negated_flag(interpreter.graph_value(equal)));
  }
  if (op == CompareOperator::In || op == CompareOperator::NotIn)
    if (const auto* dict = as<RuntimeObject>(right)) {
      const Value found = run_time_contains(interpreter, *dict, left);
      if (op == CompareOperator::In) return found;
      return interpreter.number(interpreter.negated_flag(interpreter.graph_value(found)));
    }
  if (op != CompareOperator::Is && op != CompareOperator::IsNot)
    interpreter.refuse(ReasonCode::expression,
                       cat("the comparison ", syntax::symbol(op), " of objects met at run time"));
  Value same = run_time_identity(interpreter, left, right);
  if (op == CompareOperator::Is) return same;
  if (const auto* known = as<Known>(same)) return interpreter.boolean(known->object.is(Py_False));
  return interpreter.number(interpreter.negated_flag(interpreter.graph_value(same)));
}

/// `x is None`, `x is not None`
Value optional_compare(Interpreter& interpreter, CompareOperator op, const Optional& optional) {
  return interpreter.number(op == CompareOperator::IsNot ? optional.flag
                                                         : interpreter.negated_flag(optional.flag));
}

}  // namespace

Value compare(Interpreter& interpreter, CompareOperator op, const Value& given_left,
              const Value& given_right) {
  const auto use = [&](const Value& a, const Value& b) { return compare(interpreter, op, a, b); };
  if (Value both = for_both(interpreter, given_left, given_right, use)) return both;
  if (as<RuntimeObject>(given_left) != nullptr || as<RuntimeObject>(given_right) != nullptr)
    return compare_run_time(interpreter, op, given_left, given_right);
  if (op == CompareOperator::Is || op == CompareOperator::IsNot) {
    if (const auto* left = as<Optional>(given_left); left != nullptr && is_none(given_right))
      return optional_compare(interpreter, op, *left);
    if (const auto* right = as<Optional>(given_right); right != nullptr && is_none(given_left))
      return optional_compare(interpreter, op, *right);
    if (const Value same = number_identity(interpreter, op, given_left, given_right)) return same;
  }
  switch (op) {
    case CompareOperator::Is:
      return interpreter.boolean(identical(interpreter, given_left, given_right));
    case CompareOperator::IsNot:
      return interpreter.boolean(!identical(interpreter, given_left, given_right));
    case CompareOperator::In:
      return membership(interpreter, given_right, given_left);
    case CompareOperator::NotIn: {
      const Value found = membership(interpreter, given_right, given_left);
      if (known_object(found) != nullptr)
        return interpreter.boolean(known_object(found) != Py_True);
      return interpreter.number(interpreter.negated_flag(interpreter.graph_value(found)));
    }
    default:
      break;
  }
  const Value left = plain_number(interpreter, given_left);
  const Value right = plain_number(interpreter, given_right);
  if (Value result = set_compare(interpreter, op, left, right)) return result;
  if (as<Instance>(left) != nullptr || as<Instance>(right) != nullptr)
    return compare_instances(interpreter, op, left, right);
  if (is_constant(left) && is_constant(right))
    return interpreter.constant(interpreter.must(PyObject_RichCompare(
        as<Known>(left)->object.get(), as<Known>(right)->object.get(), python_comparison(op))));
  if (as<Tensor>(left) != nullptr || as<Tensor>(right) != nullptr)
    return tensor_compare(interpreter, op, left, right);
  if (is_number(left) && is_number(right)) return number_compare(interpreter, op, left, right);
  Value a = opened(interpreter, left), b = opened(interpreter, right);
  const auto* first = as<Sequence>(a);
  const auto* second = as<Sequence>(b);
  if (first != nullptr && second != nullptr)
    return sequence_compare(interpreter, op, *first, *second);
  const auto* left_known = as<Known>(left);
  const auto* right_known = as<Known>(right);
  if (left_known != nullptr && right_known != nullptr && first == nullptr && second == nullptr)
    return object_compare(interpreter, op, *left_known, *right_known, left, right);
  for (const Known* known : {left_known, right_known})
    if (known != nullptr && (Py_TYPE(known->object.get())->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0)
      return compare_instances(interpreter, op, left, right);
  bool equality = op == CompareOperator::Eq || op == CompareOperator::NotEq;
  if (equality && left == right) return interpreter.boolean(op == CompareOperator::Eq);
  if (equality && of_kinds_that_never_equal(left, right))
    return interpreter.boolean(op == CompareOperator::NotEq);
  // None equals nothing but itself.
  for (const Known* known : {left_known, right_known})
    if (equality && known != nullptr && known->object.is(Py_None))
      return interpreter.boolean(op == CompareOperator::NotEq);
  interpreter.refuse(ReasonCode::expression, cat("the comparison ", syntax::symbol(op)));
}

// --- conversions --------------------------------------------------------------------------------

Value convert_number(Interpreter& interpreter, const Value& value, Type::Kind kind) {
  const auto& number = *as<Number>(value);
  if (number.type == kind) return value;
  PyTypeObject* type = kind == Type::Kind::i64   ? &PyLong_Type
                       : kind == Type::Kind::f64 ? &PyFloat_Type
                                                 : &PyBool_Type;
  Object example;
  if (number.example)
    example = interpreter.must(
        PyObject_CallOneArg(reinterpret_cast<PyObject*>(type), number.example.get()));
  if (kind == Type::Kind::boolean && number.dim && number.dim->lower_bound().value_or(0) > 0)
    return interpreter.boolean(true);
  const char* name = kind == Type::Kind::i64   ? "scalar_int"
                     : kind == Type::Kind::f64 ? "scalar_float"
                                               : "scalar_bool";
  return interpreter.number(
      operator_named(name)(interpreter.builder(), {interpreter.graph_value(value)}), example);
}

const char* comparison_method(CompareOperator op) {
  switch (op) {
    case CompareOperator::Eq:
      return "__eq__";
    case CompareOperator::NotEq:
      return "__ne__";
    case CompareOperator::Lt:
      return "__lt__";
    case CompareOperator::LtE:
      return "__le__";
    case CompareOperator::Gt:
      return "__gt__";
    default:
      return "__ge__";
  }
}

}  // namespace janus::frontend
