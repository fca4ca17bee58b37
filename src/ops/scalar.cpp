// Operators on Python numbers (i64, f64, bool), with Python's semantics: true and floor division,
// remainders with the divisor's sign, exact comparisons. They run without ATen (ops/number.h). If
// Python would raise, the run fails and the call is repeated in Python.
#include <array>
#include <cmath>
#include <limits>

#include "graph/builder.h"
#include "ops/attributes.h"
#include "ops/list.h"
#include "ops/number.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

constexpr Trait computed = Trait::pure | Trait::no_gradient;
constexpr Trait checked = computed | Trait::may_fail;

using Result = std::optional<Number>;
using Numbers = std::span<const Number>;

constexpr int64_t largest_exact = int64_t{1} << 53;

bool is_float(const Number& number) { return std::holds_alternative<double>(number); }
bool is_bool(const Number& number) { return std::holds_alternative<bool>(number); }
bool any_float(Numbers n) { return is_float(n[0]) || is_float(n[1]); }

int64_t to_integer(const Number& number) {
  return is_bool(number) ? std::get<bool>(number) : std::get<int64_t>(number);
}

bool converts_exactly(const Number& number) {
  if (is_float(number)) return true;
  const int64_t value = to_integer(number);
  return value >= -largest_exact && value <= largest_exact;
}

/// nullopt for a result that overflowed from finite operands: Python raises OverflowError.
Result finite_from(double result, std::initializer_list<double> operands) {
  if (std::isinf(result))
    for (const double operand : operands)
      if (!std::isfinite(operand)) return result;
  if (std::isinf(result)) return std::nullopt;
  return result;
}

/// A double as an integer; nullopt if it does not fit.
Result integer_from(double value) {
  if (!(value >= -9223372036854775808.0 && value < 9223372036854775808.0)) return std::nullopt;
  return static_cast<int64_t>(value);
}

// ---- Arithmetic -------------------------------------------------------------------------------

Result add_up(Numbers n) {
  if (any_float(n)) return to_double(n[0]) + to_double(n[1]);
  int64_t sum;
  if (__builtin_add_overflow(to_integer(n[0]), to_integer(n[1]), &sum)) return std::nullopt;
  return sum;
}

Result subtract(Numbers n) {
  if (any_float(n)) return to_double(n[0]) - to_double(n[1]);
  int64_t difference;
  if (__builtin_sub_overflow(to_integer(n[0]), to_integer(n[1]), &difference)) return std::nullopt;
  return difference;
}

Result multiply(Numbers n) {
  if (any_float(n)) return to_double(n[0]) * to_double(n[1]);
  int64_t product;
  if (__builtin_mul_overflow(to_integer(n[0]), to_integer(n[1]), &product)) return std::nullopt;
  return product;
}

Result divide(Numbers n) {
  const double divisor = to_double(n[1]);
  if (divisor == 0 || !converts_exactly(n[0]) || !converts_exactly(n[1])) return std::nullopt;
  return to_double(n[0]) / divisor;
}

struct Division {
  double quotient, rest;
};

/// Floor quotient, and remainder with the divisor's sign; signs of zeros included.
Division divide_floor(double a, double b) {
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0) {
    if ((b < 0) != (rest < 0)) {
      rest += b;
      quotient -= 1;
    }
  } else {
    rest = std::copysign(0.0, b);
  }
  if (quotient == 0) return {std::copysign(0.0, a / b), rest};
  const double down = std::floor(quotient);
  return {quotient - down > 0.5 ? down + 1 : down, rest};
}

Result divide_down(Numbers n) {
  if (to_double(n[1]) == 0) return std::nullopt;
  if (any_float(n)) return divide_floor(to_double(n[0]), to_double(n[1])).quotient;
  const int64_t a = to_integer(n[0]), b = to_integer(n[1]);
  if (b == -1) return subtract(std::array<Number, 2>{int64_t{0}, a});
  return a / b - static_cast<int64_t>(a % b != 0 && (a % b < 0) != (b < 0));
}

Result modulo(Numbers n) {
  if (to_double(n[1]) == 0) return std::nullopt;
  if (any_float(n)) return divide_floor(to_double(n[0]), to_double(n[1])).rest;
  const int64_t a = to_integer(n[0]), b = to_integer(n[1]);
  if (b == -1) return int64_t{0};
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Result integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 != 0 && __builtin_mul_overflow(result, base, &result)) return std::nullopt;
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) return std::nullopt;
  }
  return result;
}

Result power(Numbers n) {
  if (!any_float(n) && to_integer(n[1]) >= 0)
    return integer_power(to_integer(n[0]), to_integer(n[1]));
  if (!converts_exactly(n[0]) || !converts_exactly(n[1])) return std::nullopt;
  const double base = to_double(n[0]), exponent = to_double(n[1]);
  if (base == 0 && exponent < 0) return std::nullopt;
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) &&
      exponent != std::floor(exponent))
    return std::nullopt;  // complex in Python
  return finite_from(std::pow(base, exponent), {base, exponent});
}

Result negate(Numbers n) {
  if (is_float(n[0])) return -std::get<double>(n[0]);
  return subtract(std::array<Number, 2>{int64_t{0}, n[0]});
}

Result unchanged(Numbers n) {
  if (is_float(n[0])) return n[0];
  return to_integer(n[0]);
}

Result absolute(Numbers n) {
  if (is_float(n[0])) return std::fabs(std::get<double>(n[0]));
  return to_integer(n[0]) < 0 ? negate(n) : Result(to_integer(n[0]));
}

// ---- Bits -------------------------------------------------------------------------------------

template <class Function>
Result bitwise(Numbers n, Function&& function) {
  const int64_t result = function(to_integer(n[0]), to_integer(n[1]));
  if (is_bool(n[0]) && is_bool(n[1])) return result != 0;
  return result;
}

Result bit_and(Numbers n) {
  return bitwise(n, [](int64_t a, int64_t b) { return a & b; });
}
Result bit_or(Numbers n) {
  return bitwise(n, [](int64_t a, int64_t b) { return a | b; });
}
Result bit_xor(Numbers n) {
  return bitwise(n, [](int64_t a, int64_t b) { return a ^ b; });
}
Result invert(Numbers n) { return ~to_integer(n[0]); }

Result shift_left(Numbers n) {
  const int64_t count = to_integer(n[1]);
  if (count < 0 || count > 62) return std::nullopt;
  return multiply(std::array<Number, 2>{to_integer(n[0]), int64_t{1} << count});
}

Result shift_right(Numbers n) {
  const int64_t count = to_integer(n[1]);
  if (count < 0) return std::nullopt;
  return to_integer(n[0]) >> std::min<int64_t>(count, 63);
}

// ---- Comparisons and choices ------------------------------------------------------------------

template <class Compare>
Result compare(Numbers n, Compare&& holds) {
  if (!any_float(n)) return holds(to_integer(n[0]), to_integer(n[1]));
  if (!converts_exactly(n[0]) || !converts_exactly(n[1])) return std::nullopt;
  return holds(to_double(n[0]), to_double(n[1]));
}

Result equal(Numbers n) {
  return compare(n, [](auto a, auto b) { return a == b; });
}
Result not_equal(Numbers n) {
  return compare(n, [](auto a, auto b) { return a != b; });
}
Result less(Numbers n) {
  return compare(n, [](auto a, auto b) { return a < b; });
}
Result less_equal(Numbers n) {
  return compare(n, [](auto a, auto b) { return a <= b; });
}
Result greater(Numbers n) {
  return compare(n, [](auto a, auto b) { return a > b; });
}
Result greater_equal(Numbers n) {
  return compare(n, [](auto a, auto b) { return a >= b; });
}

/// Python's min: the first of equal operands, and the first if one is NaN.
Result smaller(Numbers n) {
  const Result second_is_smaller = less(std::array<Number, 2>{n[1], n[0]});
  if (!second_is_smaller) return std::nullopt;
  return std::get<bool>(*second_is_smaller) ? n[1] : n[0];
}

Result larger(Numbers n) {
  const Result second_is_larger = greater(std::array<Number, 2>{n[1], n[0]});
  if (!second_is_larger) return std::nullopt;
  return std::get<bool>(*second_is_larger) ? n[1] : n[0];
}

Result choose(Numbers n) { return truth(n[0]) ? n[1] : n[2]; }
Result negation(Numbers n) { return !truth(n[0]); }

// ---- Conversions and functions ----------------------------------------------------------------

Result as_bool(Numbers n) { return truth(n[0]); }
Result as_float(Numbers n) { return to_double(n[0]); }

/// The functions for doubles, as template arguments.
double c_trunc(double x) { return std::trunc(x); }
double c_floor(double x) { return std::floor(x); }
double c_ceil(double x) { return std::ceil(x); }
double c_nearbyint(double x) { return std::nearbyint(x); }
double c_sqrt(double x) { return std::sqrt(x); }
double c_exp(double x) { return std::exp(x); }
double c_sin(double x) { return std::sin(x); }
double c_cos(double x) { return std::cos(x); }
double c_tan(double x) { return std::tan(x); }
double c_tanh(double x) { return std::tanh(x); }

template <double (*rounding)(double)>
Result rounded(Numbers n) {
  return is_float(n[0]) ? integer_from(rounding(std::get<double>(n[0]))) : to_integer(n[0]);
}

template <double (*function)(double)>
Result finite_function(Numbers n) {
  const double x = to_double(n[0]);
  const double y = function(x);
  if (std::isnan(y) && !std::isnan(x)) return std::nullopt;  // outside the domain
  return finite_from(y, {x});
}

Result logarithm(Numbers n) {
  const double x = to_double(n[0]);
  if (x <= 0) return std::nullopt;
  return std::log(x);
}

Result is_nan(Numbers n) { return std::isnan(to_double(n[0])); }
Result is_infinite(Numbers n) { return std::isinf(to_double(n[0])); }
Result is_finite(Numbers n) { return std::isfinite(to_double(n[0])); }

// ---- Types ------------------------------------------------------------------------------------

bool is_float(const Type& type) { return type.kind == Type::Kind::f64; }

void require_numbers(const Infer& infer) {
  for (size_t i = 0; i < infer.inputs.size(); ++i)
    if (!infer.type(i).is_number()) infer.fail(cat("operand ", i, " is ", infer.type(i)));
}

std::vector<Type> infer_arithmetic(const Infer& infer) {
  require_numbers(infer);
  for (const Value* input : infer.inputs)
    if (is_float(input->type)) return {Type::f64()};
  return {Type::i64()};
}

std::vector<Type> infer_power(const Infer& infer) {
  const auto types = infer_arithmetic(infer);
  if (is_float(types[0])) return types;
  const auto exponent = constant_integer(infer.inputs[1]);
  if (!exponent) infer.fail("whether the power is an integer depends on the exponent");
  return {*exponent < 0 ? Type::f64() : Type::i64()};
}

std::vector<Type> infer_bits(const Infer& infer) {
  require_numbers(infer);
  bool all_bool = true;
  for (const Value* input : infer.inputs) {
    if (is_float(input->type)) infer.fail("bits of a float");
    all_bool &= input->type.kind == Type::Kind::boolean;
  }
  return {all_bool ? Type::boolean() : Type::i64()};
}

std::vector<Type> infer_shift(const Infer& infer) {
  infer_bits(infer);
  return {Type::i64()};
}

std::vector<Type> infer_float(const Infer& infer) {
  require_numbers(infer);
  return {Type::f64()};
}

std::vector<Type> infer_integer(const Infer& infer) {
  require_numbers(infer);
  return {Type::i64()};
}

std::vector<Type> infer_bool(const Infer& infer) {
  require_numbers(infer);
  return {Type::boolean()};
}

/// The type of the last two operands, which must agree.
std::vector<Type> infer_choice(const Infer& infer) {
  require_numbers(infer);
  const size_t last = infer.inputs.size() - 1;
  if (!(infer.type(last) == infer.type(last - 1))) infer.fail("operands differ in type");
  return {infer.type(last)};
}

// ---- Folding ----------------------------------------------------------------------------------

std::optional<Number> known_number(const Value* value) {
  const AttributeValue* constant = constant_value(value);
  if (constant == nullptr) return std::nullopt;
  if (const auto* number = std::get_if<int64_t>(constant)) return *number;
  if (const auto* number = std::get_if<double>(constant)) return *number;
  if (const auto* flag = std::get_if<bool>(constant)) return *flag;
  return std::nullopt;
}

Value* fold_number(const Fold& fold) {
  std::vector<Number> operands;
  for (const Value* input : fold.inputs) {
    const auto known = known_number(input);
    if (!known) return nullptr;
    operands.push_back(*known);
  }
  const Result result = fold.node.op->number(operands);
  if (!result) return nullptr;  // it fails when it is run
  return std::visit([&](auto value) { return fold.builder.constant(value); }, *result);
}

}  // namespace

constinit const OpDef op::scalar_add{
    .name = "scalar_add",
    .doc = "a + b.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = checked,
    .raises = Raises::not_for_contents,
    .infer = infer_arithmetic,
    .fold = fold_number,
    .number = add_up,
};

constinit const OpDef op::scalar_sub{
    .name = "scalar_sub",
    .doc = "a - b.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = checked,
    .raises = Raises::not_for_contents,
    .infer = infer_arithmetic,
    .fold = fold_number,
    .number = subtract,
};

constinit const OpDef op::scalar_mul{
    .name = "scalar_mul",
    .doc = "a * b.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = checked,
    .raises = Raises::not_for_contents,
    .infer = infer_arithmetic,
    .fold = fold_number,
    .number = multiply,
};

constinit const OpDef op::scalar_truediv{
    .name = "scalar_truediv",
    .doc = "a / b, an f64; fails for b == 0.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = checked,
    .raises = Raises::zero,
    .infer = infer_float,
    .fold = fold_number,
    .number = divide,
};

constinit const OpDef op::scalar_floordiv{
    .name = "scalar_floordiv",
    .doc = "a // b, rounded down; fails for b == 0.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = checked,
    .raises = Raises::zero,
    .infer = infer_arithmetic,
    .fold = fold_number,
    .number = divide_down,
};

constinit const OpDef op::scalar_mod{
    .name = "scalar_mod",
    .doc = "a % b, with the sign of b; fails for b == 0.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = checked,
    .raises = Raises::zero,
    .infer = infer_arithmetic,
    .fold = fold_number,
    .number = modulo,
};

constinit const OpDef op::scalar_pow{
    .name = "scalar_pow",
    .doc = "a ** b; of integers, an f64 if b is negative.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = checked,
    .raises = Raises::outside_domain_real,
    .infer = infer_power,
    .fold = fold_number,
    .number = power,
};

constinit const OpDef op::scalar_neg{
    .name = "scalar_neg",
    .doc = "-a.",
    .schema = "(Scalar a) -> Scalar",
    .traits = checked,
    .raises = Raises::not_for_contents,
    .infer = infer_arithmetic,
    .fold = fold_number,
    .number = negate,
};

constinit const OpDef op::scalar_pos{
    .name = "scalar_pos",
    .doc = "+a: a bool becomes an integer.",
    .schema = "(Scalar a) -> Scalar",
    .traits = computed,
    .raises = Raises::not_for_contents,
    .infer = infer_arithmetic,
    .fold = fold_number,
    .number = unchanged,
};

constinit const OpDef op::scalar_abs{
    .name = "scalar_abs",
    .doc = "abs(a).",
    .schema = "(Scalar a) -> Scalar",
    .traits = checked,
    .raises = Raises::not_for_contents,
    .infer = infer_arithmetic,
    .fold = fold_number,
    .number = absolute,
};

constinit const OpDef op::scalar_and{
    .name = "scalar_and",
    .doc = "a & b of integers or bools.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = computed,
    .raises = Raises::not_for_contents,
    .infer = infer_bits,
    .fold = fold_number,
    .number = bit_and,
};

constinit const OpDef op::scalar_or{
    .name = "scalar_or",
    .doc = "a | b of integers or bools.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = computed,
    .raises = Raises::not_for_contents,
    .infer = infer_bits,
    .fold = fold_number,
    .number = bit_or,
};

constinit const OpDef op::scalar_xor{
    .name = "scalar_xor",
    .doc = "a ^ b of integers or bools.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = computed,
    .raises = Raises::not_for_contents,
    .infer = infer_bits,
    .fold = fold_number,
    .number = bit_xor,
};

constinit const OpDef op::scalar_invert{
    .name = "scalar_invert",
    .doc = "~a.",
    .schema = "(Scalar a) -> Scalar",
    .traits = computed,
    .raises = Raises::not_for_contents,
    .infer = infer_shift,
    .fold = fold_number,
    .number = invert,
};

constinit const OpDef op::scalar_lshift{
    .name = "scalar_lshift",
    .doc = "a << b.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = checked,
    .raises = Raises::not_for_contents,
    .infer = infer_shift,
    .fold = fold_number,
    .number = shift_left,
};

constinit const OpDef op::scalar_rshift{
    .name = "scalar_rshift",
    .doc = "a >> b.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = checked,
    .raises = Raises::not_for_contents,
    .infer = infer_shift,
    .fold = fold_number,
    .number = shift_right,
};

constinit const OpDef op::scalar_eq{
    .name = "scalar_eq",
    .doc = "a == b.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = checked,
    .raises = Raises::not_for_contents,
    .infer = infer_bool,
    .fold = fold_number,
    .number = equal,
};

constinit const OpDef op::scalar_ne{
    .name = "scalar_ne",
    .doc = "a != b.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = checked,
    .raises = Raises::not_for_contents,
    .infer = infer_bool,
    .fold = fold_number,
    .number = not_equal,
};

constinit const OpDef op::scalar_lt{
    .name = "scalar_lt",
    .doc = "a < b.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = checked,
    .raises = Raises::not_for_contents,
    .infer = infer_bool,
    .fold = fold_number,
    .number = less,
};

constinit const OpDef op::scalar_le{
    .name = "scalar_le",
    .doc = "a <= b.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = checked,
    .raises = Raises::not_for_contents,
    .infer = infer_bool,
    .fold = fold_number,
    .number = less_equal,
};

constinit const OpDef op::scalar_gt{
    .name = "scalar_gt",
    .doc = "a > b.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = checked,
    .raises = Raises::not_for_contents,
    .infer = infer_bool,
    .fold = fold_number,
    .number = greater,
};

constinit const OpDef op::scalar_ge{
    .name = "scalar_ge",
    .doc = "a >= b.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = checked,
    .raises = Raises::not_for_contents,
    .infer = infer_bool,
    .fold = fold_number,
    .number = greater_equal,
};

constinit const OpDef op::scalar_min{
    .name = "scalar_min",
    .doc = "min(a, b) of numbers of one type.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = checked,
    .raises = Raises::not_for_contents,
    .infer = infer_choice,
    .fold = fold_number,
    .number = smaller,
};

constinit const OpDef op::scalar_max{
    .name = "scalar_max",
    .doc = "max(a, b) of numbers of one type.",
    .schema = "(Scalar a, Scalar b) -> Scalar",
    .traits = checked,
    .raises = Raises::not_for_contents,
    .infer = infer_choice,
    .fold = fold_number,
    .number = larger,
};

constinit const OpDef op::scalar_select{
    .name = "scalar_select",
    .doc = "a if condition else b, of one type; both are computed.",
    .schema = "(Scalar condition, Scalar a, Scalar b) -> Scalar",
    .traits = computed,
    .raises = Raises::not_for_contents,
    .infer = infer_choice,
    .fold = fold_number,
    .number = choose,
};

constinit const OpDef op::scalar_not{
    .name = "scalar_not",
    .doc = "not a.",
    .schema = "(Scalar a) -> Scalar",
    .traits = computed,
    .raises = Raises::not_for_contents,
    .infer = infer_bool,
    .fold = fold_number,
    .number = negation,
};

constinit const OpDef op::scalar_bool{
    .name = "scalar_bool",
    .doc = "bool(a).",
    .schema = "(Scalar a) -> Scalar",
    .traits = computed,
    .raises = Raises::not_for_contents,
    .infer = infer_bool,
    .fold = fold_number,
    .number = as_bool,
};

constinit const OpDef op::scalar_float{
    .name = "scalar_float",
    .doc = "float(a).",
    .schema = "(Scalar a) -> Scalar",
    .traits = computed,
    .raises = Raises::not_for_contents,
    .infer = infer_float,
    .fold = fold_number,
    .number = as_float,
};

constinit const OpDef op::scalar_int{
    .name = "scalar_int",
    .doc = "int(a): without the fraction; fails for NaN and infinities.",
    .schema = "(Scalar a) -> Scalar",
    .traits = checked,
    .raises = Raises::outside_domain,
    .infer = infer_integer,
    .fold = fold_number,
    .number = rounded<c_trunc>,
};

constinit const OpDef op::scalar_floor{
    .name = "scalar_floor",
    .doc = "math.floor(a).",
    .schema = "(Scalar a) -> Scalar",
    .traits = checked,
    .raises = Raises::outside_domain,
    .infer = infer_integer,
    .fold = fold_number,
    .number = rounded<c_floor>,
};

constinit const OpDef op::scalar_ceil{
    .name = "scalar_ceil",
    .doc = "math.ceil(a).",
    .schema = "(Scalar a) -> Scalar",
    .traits = checked,
    .raises = Raises::outside_domain,
    .infer = infer_integer,
    .fold = fold_number,
    .number = rounded<c_ceil>,
};

constinit const OpDef op::scalar_round{
    .name = "scalar_round",
    .doc = "round(a): to the nearest, the even one of two.",
    .schema = "(Scalar a) -> Scalar",
    .traits = checked,
    .raises = Raises::outside_domain,
    .infer = infer_integer,
    .fold = fold_number,
    .number = rounded<c_nearbyint>,
};

constinit const OpDef op::scalar_sqrt{
    .name = "scalar_sqrt",
    .doc = "math.sqrt(a); fails where Python raises.",
    .schema = "(Scalar a) -> Scalar",
    .traits = checked,
    .raises = Raises::outside_domain,
    .infer = infer_float,
    .fold = fold_number,
    .number = finite_function<c_sqrt>,
};

constinit const OpDef op::scalar_exp{
    .name = "scalar_exp",
    .doc = "math.exp(a); fails where Python raises.",
    .schema = "(Scalar a) -> Scalar",
    .traits = checked,
    .raises = Raises::outside_domain,
    .infer = infer_float,
    .fold = fold_number,
    .number = finite_function<c_exp>,
};

constinit const OpDef op::scalar_sin{
    .name = "scalar_sin",
    .doc = "math.sin(a); fails where Python raises.",
    .schema = "(Scalar a) -> Scalar",
    .traits = checked,
    .raises = Raises::outside_domain,
    .infer = infer_float,
    .fold = fold_number,
    .number = finite_function<c_sin>,
};

constinit const OpDef op::scalar_cos{
    .name = "scalar_cos",
    .doc = "math.cos(a); fails where Python raises.",
    .schema = "(Scalar a) -> Scalar",
    .traits = checked,
    .raises = Raises::outside_domain,
    .infer = infer_float,
    .fold = fold_number,
    .number = finite_function<c_cos>,
};

constinit const OpDef op::scalar_tan{
    .name = "scalar_tan",
    .doc = "math.tan(a); fails where Python raises.",
    .schema = "(Scalar a) -> Scalar",
    .traits = checked,
    .raises = Raises::outside_domain,
    .infer = infer_float,
    .fold = fold_number,
    .number = finite_function<c_tan>,
};

constinit const OpDef op::scalar_tanh{
    .name = "scalar_tanh",
    .doc = "math.tanh(a); fails where Python raises.",
    .schema = "(Scalar a) -> Scalar",
    .traits = checked,
    .raises = Raises::not_for_contents,
    .infer = infer_float,
    .fold = fold_number,
    .number = finite_function<c_tanh>,
};

constinit const OpDef op::scalar_log{
    .name = "scalar_log",
    .doc = "math.log(a); fails for a <= 0.",
    .schema = "(Scalar a) -> Scalar",
    .traits = checked,
    .raises = Raises::outside_domain,
    .infer = infer_float,
    .fold = fold_number,
    .number = logarithm,
};

constinit const OpDef op::scalar_isnan{
    .name = "scalar_isnan",
    .doc = "math.isnan(a).",
    .schema = "(Scalar a) -> Scalar",
    .traits = computed,
    .raises = Raises::not_for_contents,
    .infer = infer_bool,
    .fold = fold_number,
    .number = is_nan,
};

constinit const OpDef op::scalar_isinf{
    .name = "scalar_isinf",
    .doc = "math.isinf(a).",
    .schema = "(Scalar a) -> Scalar",
    .traits = computed,
    .raises = Raises::not_for_contents,
    .infer = infer_bool,
    .fold = fold_number,
    .number = is_infinite,
};

constinit const OpDef op::scalar_isfinite{
    .name = "scalar_isfinite",
    .doc = "math.isfinite(a).",
    .schema = "(Scalar a) -> Scalar",
    .traits = computed,
    .raises = Raises::not_for_contents,
    .infer = infer_bool,
    .fold = fold_number,
    .number = is_finite,
};

namespace ops {

bool is_of_numbers(const OpDef& op) { return op.number != nullptr || &op == &op::scalar_tensor; }

bool truth(const Number& number) {
  return std::visit([](auto value) { return value != 0; }, number);
}

double to_double(const Number& number) {
  return std::visit([](auto value) { return static_cast<double>(value); }, number);
}

}  // namespace ops
}  // namespace janus
