#include "graph/element_code.h"

#include <array>
#include <cmath>
#include <limits>

namespace janus::graph {
namespace {

using Scalar = ScalarCode::Scalar;

struct UnaryFunction {
  std::string_view name;
  double (*compute)(double);
};

struct BinaryFunction {
  std::string_view name;
  double (*compute)(double, double);
};

constexpr std::array unary_functions = {
    UnaryFunction{"sqrt", std::sqrt},     UnaryFunction{"refined_sqrt", std::sqrt},
    UnaryFunction{"fabs", std::fabs},     UnaryFunction{"floor", std::floor},
    UnaryFunction{"ceil", std::ceil},     UnaryFunction{"trunc", std::trunc},
    UnaryFunction{"rint", std::rint},     UnaryFunction{"nearbyint", std::nearbyint},
    UnaryFunction{"round", std::round},   UnaryFunction{"exp", std::exp},
    UnaryFunction{"exp2", std::exp2},     UnaryFunction{"expm1", std::expm1},
    UnaryFunction{"log", std::log},       UnaryFunction{"log2", std::log2},
    UnaryFunction{"log10", std::log10},   UnaryFunction{"log1p", std::log1p},
    UnaryFunction{"sin", std::sin},       UnaryFunction{"cos", std::cos},
    UnaryFunction{"tan", std::tan},       UnaryFunction{"asin", std::asin},
    UnaryFunction{"acos", std::acos},     UnaryFunction{"atan", std::atan},
    UnaryFunction{"sinh", std::sinh},     UnaryFunction{"cosh", std::cosh},
    UnaryFunction{"tanh", std::tanh},     UnaryFunction{"asinh", std::asinh},
    UnaryFunction{"acosh", std::acosh},   UnaryFunction{"atanh", std::atanh},
    UnaryFunction{"erf", std::erf},       UnaryFunction{"erfc", std::erfc},
    UnaryFunction{"lgamma", std::lgamma}, UnaryFunction{"tgamma", std::tgamma},
    UnaryFunction{"cbrt", std::cbrt},
};

constexpr std::array binary_functions = {
    BinaryFunction{"pow", std::pow},           BinaryFunction{"atan2", std::atan2},
    BinaryFunction{"hypot", std::hypot},       BinaryFunction{"fmod", std::fmod},
    BinaryFunction{"fmin", std::fmin},         BinaryFunction{"fmax", std::fmax},
    BinaryFunction{"copysign", std::copysign},
};

double call_function(std::string_view name, std::span<const double> arguments) {
  for (const UnaryFunction& function : unary_functions)
    if (function.name == name && arguments.size() == 1) return function.compute(arguments[0]);
  for (const BinaryFunction& function : binary_functions)
    if (function.name == name && arguments.size() == 2)
      return function.compute(arguments[0], arguments[1]);
  if (name == "fma" && arguments.size() == 3)
    return std::fma(arguments[0], arguments[1], arguments[2]);
  throw InternalError(cat("reference: no function ", name, " of ", arguments.size(), " arguments"));
}

template <class T>
bool compare_values(ScalarCode::Compare how, T a, T b) {
  switch (how) {
    case ScalarCode::Compare::eq:
      return a == b;
    case ScalarCode::Compare::ne:
      return a != b;
    case ScalarCode::Compare::lt:
      return a < b;
    case ScalarCode::Compare::le:
      return a <= b;
    case ScalarCode::Compare::gt:
      return a > b;
    case ScalarCode::Compare::ge:
      return a >= b;
  }
  return false;
}

}  // namespace

TypedNumber typed_number(const Datum& datum) {
  if (const auto* flag = std::get_if<bool>(&datum)) return {{.integer = *flag ? 1 : 0}, DType::b1};
  if (const auto* integer = std::get_if<int64_t>(&datum))
    return {{.integer = *integer}, DType::i64};
  if (const auto* real = std::get_if<double>(&datum)) return {{.real = *real}, DType::f64};
  return {};
}

bool meets_in_half(const Node& node, size_t index, DType dtype) {
  const Type& type = node.inputs.at(index)->type;
  if (!is_half(dtype) || (type.is_tensor() && type.dtype == dtype)) return false;
  const auto operands = node.op->signature().operands();
  return index >= operands.size() || operands[index]->kind <= Parameter::Kind::tensor_list;
}

Number ElementCode::run(std::span<const TypedNumber> inputs, DType result_dtype) {
  inputs_ = inputs;
  values_.clear();
  const Scalar result = node_.op->scalar(*this);
  return converted(at(result), result.dtype, result_dtype);
}

const Number& ElementCode::at(Scalar scalar) const {
  return values_.at(static_cast<size_t>(scalar.id));
}

Scalar ElementCode::push(Number number, DType dtype) {
  values_.push_back(rounded(number, dtype));
  return {.id = static_cast<int>(values_.size()) - 1, .dtype = dtype};
}

void ElementCode::expect_same(Scalar a, Scalar b) const {
  TORCHJANUS_CHECK(a.dtype == b.dtype, node_.op->name, ": a step combines ", name(a.dtype), " and ",
                   name(b.dtype));
}

Scalar ElementCode::integer_result(bool overflow, int64_t value, DType dtype) {
  if (overflow && python_numbers_) throw RunFailure(cat(node_.op->name, ": integer overflow"));
  return push({.integer = value}, dtype);
}

Scalar ElementCode::raw_input(size_t index) {
  const TypedNumber& input = inputs_[index];
  return push(input.number, input.dtype);
}

Scalar ElementCode::constant(double value, DType dtype) {
  return push(Number::of(value, dtype), dtype);
}

Scalar ElementCode::convert(Scalar a, DType dtype) {
  return push(converted(at(a), a.dtype, dtype), dtype);
}

Scalar ElementCode::add(Scalar a, Scalar b) {
  expect_same(a, b);
  if (is_floating(a.dtype)) return push({.real = at(a).real + at(b).real}, a.dtype);
  int64_t sum;
  const bool overflow = __builtin_add_overflow(at(a).integer, at(b).integer, &sum);
  return integer_result(overflow, sum, a.dtype);
}

Scalar ElementCode::sub(Scalar a, Scalar b) {
  expect_same(a, b);
  if (is_floating(a.dtype)) return push({.real = at(a).real - at(b).real}, a.dtype);
  int64_t difference;
  const bool overflow = __builtin_sub_overflow(at(a).integer, at(b).integer, &difference);
  return integer_result(overflow, difference, a.dtype);
}

Scalar ElementCode::mul(Scalar a, Scalar b) {
  expect_same(a, b);
  if (is_floating(a.dtype)) return push({.real = at(a).real * at(b).real}, a.dtype);
  int64_t product;
  const bool overflow = __builtin_mul_overflow(at(a).integer, at(b).integer, &product);
  return integer_result(overflow, product, a.dtype);
}

Scalar ElementCode::div(Scalar a, Scalar b) {
  expect_same(a, b);
  if (is_floating(a.dtype)) return push({.real = at(a).real / at(b).real}, a.dtype);
  if (at(b).integer == 0) throw RunFailure(cat(node_.op->name, ": division by zero"));
  if (at(b).integer == -1) return neg(a);
  return push({.integer = at(a).integer / at(b).integer}, a.dtype);
}

Scalar ElementCode::rem(Scalar a, Scalar b) {
  expect_same(a, b);
  if (is_floating(a.dtype)) return push({.real = std::fmod(at(a).real, at(b).real)}, a.dtype);
  if (at(b).integer == 0) throw RunFailure(cat(node_.op->name, ": division by zero"));
  return push({.integer = at(b).integer == -1 ? 0 : at(a).integer % at(b).integer}, a.dtype);
}

Scalar ElementCode::neg(Scalar a) {
  if (is_floating(a.dtype)) return push({.real = -at(a).real}, a.dtype);
  int64_t result;
  const bool overflow = __builtin_sub_overflow(int64_t{0}, at(a).integer, &result);
  return integer_result(overflow, result, a.dtype);
}

Scalar ElementCode::bit_and(Scalar a, Scalar b) {
  expect_same(a, b);
  return push({.integer = at(a).integer & at(b).integer}, a.dtype);
}

Scalar ElementCode::bit_or(Scalar a, Scalar b) {
  expect_same(a, b);
  return push({.integer = at(a).integer | at(b).integer}, a.dtype);
}

Scalar ElementCode::bit_xor(Scalar a, Scalar b) {
  expect_same(a, b);
  return push({.integer = at(a).integer ^ at(b).integer}, a.dtype);
}

Scalar ElementCode::compare(Compare how, Scalar a, Scalar b) {
  expect_same(a, b);
  const bool result = is_floating(a.dtype) ? compare_values(how, at(a).real, at(b).real)
                                           : compare_values(how, at(a).integer, at(b).integer);
  return push({.integer = result ? 1 : 0}, DType::b1);
}

Scalar ElementCode::select(Scalar condition, Scalar a, Scalar b) {
  expect_same(a, b);
  return at(condition).integer != 0 ? a : b;
}

Scalar ElementCode::call(std::string_view function, std::span<const Scalar> arguments) {
  std::vector<double> values;
  for (const Scalar argument : arguments) {
    expect_same(argument, arguments[0]);
    TORCHJANUS_CHECK(is_floating(argument.dtype), node_.op->name, ": ", function, " of ",
                     name(argument.dtype));
    values.push_back(at(argument).real);
  }
  const DType dtype = arguments[0].dtype;
  if (function == "nextafter") {
    if (dtype == DType::f32)
      return push({.real = std::nextafter(static_cast<float>(values.at(0)),
                                          static_cast<float>(values.at(1)))},
                  dtype);
    return push({.real = std::nextafter(values.at(0), values.at(1))}, dtype);
  }
  return push({.real = call_function(function, values)}, dtype);
}

}  // namespace janus::graph
