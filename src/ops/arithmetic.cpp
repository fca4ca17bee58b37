// Elementwise operators of two or more operands that broadcast: sums, products, quotients, powers,
// choices. Operands of type Tensor may be Python numbers as long as one is a tensor.
#include <array>
#include <cmath>
#include <limits>

#include "ops/eager_arithmetic.h"
#include "ops/element.h"
#include "ops/expression.h"
#include "ops/row_rules.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

constexpr size_t three[] = {0, 1, 2};

/// Sums with a factor `alpha` (operand 2), which has to be integral where the result is, and a
/// boolean only there.
std::vector<Type> scaled_sum(const Infer& infer) {
  require_number(infer, 2);
  const auto types = arithmetic(infer);
  const bool floating_alpha = infer.type(2).kind == Type::Kind::f64;
  if (floating_alpha && !is_floating(types[0].dtype))
    infer.fail("alpha must be an integer where the operands are");
  if (infer.type(2).kind == Type::Kind::boolean && types[0].dtype != DType::b1)
    infer.fail("alpha is a boolean only where the operands are");
  return types;
}

std::vector<Type> scaled_difference(const Infer& infer) {
  for (const size_t input : {0, 1}) {
    const Type& type = infer.type(input);
    if (type.kind == Type::Kind::boolean || (type.is_tensor() && type.dtype == DType::b1))
      infer.fail("subtraction of booleans");
  }
  return scaled_sum(infer);
}

/// The rule of operators that, unlike +, take no numbers in place of tensors.
std::vector<Type> tensors_only(const Infer& infer) {
  tensor_type(infer, 0);
  tensor_type(infer, 1);
  return arithmetic(infer);
}

std::vector<Type> numeric_arithmetic(const Infer& infer) {
  const auto types = arithmetic(infer);
  if (types[0].dtype == DType::b1) infer.fail("boolean operands");
  return types;
}

std::vector<Type> fused_product(const Infer& infer) {
  require_number(infer, 3);
  for (const size_t input : three) tensor_type(infer, input);
  const DType dtype = promoted(infer, three);
  if (!is_floating(dtype)) infer.fail("integer operands");
  return {Type::tensor(dtype, broadcast_inputs(infer, three))};
}

/// Torch divides no integers by integers here.
std::vector<Type> fused_quotient(const Infer& infer) {
  if (is_integral(tensor_type(infer, 1).dtype) && is_integral(tensor_type(infer, 2).dtype))
    infer.fail("an integer division");
  return fused_product(infer);
}

/// a + alpha * b, or a - alpha * b, without a multiplication by one.
Element sum_with_factor(ScalarCode& k, const Element& a, const Element& b, bool subtracts) {
  if (is_constant(k.node().inputs[2], 1)) return subtracts ? a - b : a + b;
  const Element alpha = rounded(element(k, 2));
  if (!is_floating(a.dtype())) return subtracts ? a - alpha * b : a + alpha * b;
  const EagerArithmetic& eager = eager_arithmetic();
  const DType dtype = k.node().output()->type.dtype;
  if ((dtype == DType::f16 && eager.rounds_products_of_f16) ||
      (dtype == DType::bf16 && eager.rounds_products_of_bf16))
    return subtracts ? a - rounded(alpha * b) : a + rounded(alpha * b);
  return product_and_sum(eager.contracts_sums, subtracts ? -alpha : alpha, b, a);
}

Expression scaled(const Vjp& g, const Expression& x) {
  return is_constant(g.in(2), 1) ? x : x * in(g, 2);
}

/// Input `index` if it has the type of the result, so that it can replace it.
Value* passed_through(const Fold& fold, size_t index) {
  return fold.inputs[index]->type == fold.node.output()->type ? fold.inputs[index] : nullptr;
}

Value* fold_zero_summand(const Fold& fold) {
  // x + 0 is not x for x = -0.0, but x - 0 is.
  const bool exact = fold.node.op == &op::sub || !is_floating(fold.node.output()->type.dtype);
  const auto zero = constant_number(fold.inputs[1]);
  if (exact && zero == 0.0 && !std::signbit(*zero)) return passed_through(fold, 0);
  return nullptr;
}

Value* fold_unit_factor(const Fold& fold) {
  if (is_constant(fold.inputs[1], 1)) return passed_through(fold, 0);
  if (fold.node.op == &op::mul && is_constant(fold.inputs[0], 1)) return passed_through(fold, 1);
  return nullptr;
}

/// Whether the divisor is one number for all elements.
bool is_single(const Value& divisor) {
  return divisor.type.is_number() || divisor.type.shape.empty();
}

/// Floor division as in Python, exact even where the quotient itself was rounded. Between two
/// tensors of half precision eager rounds at each step.
Element floor_quotient(ScalarCode& k) {
  const Element a = element(k, 0), b = factor_element(k, 1);
  const bool rounds = is_half(k.node().output()->type.dtype) && !is_single(*k.node().inputs[1]);
  const auto step = [&](const Element& x) { return rounds ? rounded(x) : x; };
  const double infinity = std::numeric_limits<double>::infinity();
  const Element exact = a / b, rest = step(maths("fmod", a, b));
  // The vector function fmod gives NaN where the quotient overflows.
  const Element overflows = (maths("fabs", exact) == infinity) & (maths("fabs", a) != infinity);
  const Element raw = step(choice(overflows, a, step(a - rest)) / b);
  const Element differs = (rest != 0) & ((b < 0) ^ (rest < 0));
  const Element quotient = choice(differs, step(raw - 1), raw);
  const Element down = maths("floor", quotient);
  const Element nearest = choice(step(quotient - down) > 0.5, step(down + 1), down);
  const Element signed_zero = maths("copysign", 0.0, exact);
  return choice(b == 0, exact, choice(quotient != 0, nearest, signed_zero));
}

Element python_remainder(const Element& a, const Element& b) {
  const Element rest = maths("fmod", a, b);
  return choice((rest != 0) & ((b < 0) ^ (rest < 0)), rest + b, rest);
}

void zero_gradients(Vjp& g) {
  for (const size_t input : {0, 1})
    if (g.needs(input)) g.add(input, zeros_of(in(g, input)));
}

/// The gradient of maximum and minimum: equal operands share it.
void extremum_gradient(Vjp& g, const OpDef& loses) {
  const auto dy = dout(g), a = in(g, 0), b = in(g, 1);
  const auto share = [&](const Expression& mine, const Expression& other) {
    const auto tie = apply(op::where, apply(op::eq, mine, other), dy / 2, dy);
    return apply(op::where, apply(loses, mine, other), 0, tie);
  };
  add_gradient(g, 0, [&] { return share(a, b); });
  add_gradient(g, 1, [&] { return share(b, a); });
}

Scalar extremum(ScalarCode& k, bool maximum) {
  const Element a = element(k, 0), b = element(k, 1);
  if (a.dtype() == DType::b1) return maximum ? a | b : a & b;
  const Element better = choice(maximum ? a > b : a < b, a, b);
  if (!is_floating(a.dtype())) return better;
  return choice(is_nan(a), a, choice(is_nan(b), b, better));
}

std::vector<Type> power_of_scalar(const Infer& infer) {
  const Type& base = tensor_type(infer, 0);
  require_number(infer, 1);
  const auto exponent = constant_number(infer.inputs[1]);
  if (is_integral(base.dtype) && infer.type(1).kind != Type::Kind::f64 &&
      (!exponent || *exponent < 0))
    infer.fail("an integer power needs an exponent that is not negative");
  if (base.dtype == DType::b1) infer.fail("boolean operand");
  return {Type::tensor(promoted(infer, std::array<size_t, 2>{0, 1}), base.shape)};
}

Element inverse_root(ScalarCode& k, const Element& x) {
  const bool rounds =
      k.node().output()->type.dtype == DType::bf16 && eager_arithmetic().rounds_roots_of_bf16;
  const Element root = maths("sqrt", x);
  return 1 / (rounds ? rounded(root) : root);
}

/// self^exponent for the exponents that eager computes without `pow`. Eager rounds squares of bf16
/// before it continues, and computes roots of f16 by `pow`.
Scalar power_element(ScalarCode& k) {
  const Element base = element(k, 0);
  const auto known = constant_number(k.node().inputs[1]);
  const DType dtype = k.node().output()->type.dtype;
  const Element square = dtype == DType::bf16 ? rounded(base * base) : base * base;
  if (known == 2.0) return square;
  if (known == 3.0) return square * base;
  if (known == -2.0) return 1 / square;
  if (known == -1.0) return 1 / base;
  if (known == 0.5 && dtype != DType::f16) return maths("sqrt", base);
  if (known == -0.5 && dtype != DType::f16) return inverse_root(k, base);
  const Element exponent = rounded(element(k, 1)), power = maths("pow", base, exponent);
  if (known || !is_floating(dtype) || dtype == DType::f16) return power;
  const Element root = maths("sqrt", base);
  const Element inverse = inverse_root(k, base);
  return choice(exponent == 0.5, root, choice(exponent == -0.5, inverse, power));
}

void power_gradient_of_base(Vjp& g) {
  add_gradient(g, 0, [&] {
    const auto base = in(g, 0), exponent = in(g, 1), dy = dout(g);
    if (const auto known = constant_number(g.in(1))) {
      if (*known == 0) return zeros_of(out(g));
      if (*known == 1) return dy;
      return dy * (*known * apply(op::pow_scalar, base, *known - 1));
    }
    const auto exponents = exponent.type().is_tensor() ? exponent : zeros_of(base) + exponent;
    const auto slope = dy * (exponents * apply(op::pow, base, exponents - 1));
    return apply(op::where, apply(op::eq, exponents, 0), 0, slope);
  });
}

void power_gradient_of_exponent(Vjp& g) {
  add_gradient(g, 1, [&] {
    const auto base = in(g, 0), exponent = in(g, 1), dy = dout(g), y = out(g);
    // As the power is computed: the logarithm of integers would be taken in float32.
    const auto bases = base.type().is_tensor() ? cast(base, y.dtype()) : zeros_of(exponent) + base;
    // At base 0 the slope for non-negative exponents is 0, not NaN.
    const auto flat = apply(op::logical_and, apply(op::eq, bases, 0), apply(op::ge, exponent, 0));
    return apply(op::where, flat, 0, dy * (y * apply(op::log, bases)));
  });
}

}  // namespace

constinit const OpDef op::add{
    .name = "add",
    .doc = "self + alpha * other.",
    .schema = "(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    .aten = "add.Tensor",
    .python = "add Tensor.add",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .cost = Cost::cheap,
    .infer = scaled_sum,
    .fold = fold_zero_summand,
    .vjp =
        [](Vjp& g) {
          add_gradient(g, 0, [&] { return dout(g); });
          add_gradient(g, 1, [&] { return scaled(g, dout(g)); });
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element a = element(k, 0), b = element(k, 1);
      if (a.dtype() != DType::b1) return sum_with_factor(k, a, b, false);
      return is_constant(k.node().inputs[2], 1) ? a | b : a | rounded(element(k, 2)) * b;
    },
    .adds = for_rows::adds_alike,
    .sum_of_rows = for_rows::sum,
};

constinit const OpDef op::sub{
    .name = "sub",
    .doc = "self - alpha * other.",
    .schema = "(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    .aten = "sub.Tensor",
    .python = "sub subtract Tensor.sub Tensor.subtract",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .cost = Cost::cheap,
    .infer = scaled_difference,
    .fold = fold_zero_summand,
    .vjp =
        [](Vjp& g) {
          add_gradient(g, 0, [&] { return dout(g); });
          add_gradient(g, 1, [&] { return scaled(g, -dout(g)); });
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      return sum_with_factor(k, element(k, 0), element(k, 1), true);
    },
};

constinit const OpDef op::rsub{
    .name = "rsub",
    .doc = "other - alpha * self.",
    .schema = "(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    .aten = "rsub.Tensor",
    .python = "rsub",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .cost = Cost::cheap,
    .infer = scaled_difference,
    .vjp =
        [](Vjp& g) {
          add_gradient(g, 0, [&] { return scaled(g, -dout(g)); });
          add_gradient(g, 1, [&] { return dout(g); });
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      return sum_with_factor(k, element(k, 1), element(k, 0), true);
    },
};

constinit const OpDef op::mul{
    .name = "mul",
    .doc = "The product of two tensors, element by element.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "mul.Tensor",
    .python = "mul multiply Tensor.mul Tensor.multiply",
    .traits = elementwise | Trait::commutative,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .cost = Cost::cheap,
    .infer = arithmetic,
    .fold = fold_unit_factor,
    .vjp =
        [](Vjp& g) {
          add_gradient(g, 0, [&] { return dout(g) * in(g, 1); });
          add_gradient(g, 1, [&] { return dout(g) * in(g, 0); });
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element a = element(k, 0), b = factor_element(k, 1);
      return a.dtype() == DType::b1 ? a & b : a * b;
    },
};

constinit const OpDef op::div{
    .name = "div",
    .doc = "The true quotient of two tensors; integers give f32.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "div.Tensor",
    .python = "div divide true_divide Tensor.div Tensor.divide Tensor.true_divide",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .cost = Cost::cheap,
    .infer = floating_arithmetic,
    .fold = fold_unit_factor,
    .vjp =
        [](Vjp& g) {
          const auto a = in(g, 0), b = in(g, 1), dy = dout(g);
          add_gradient(g, 0, [&] { return dy / b; });
          add_gradient(g, 1, [&] { return -dy * ((a / b) / b); });
        },
    .scalar = [](ScalarCode& k) -> Scalar { return element(k, 0) / factor_element(k, 1); },
};

constinit const OpDef op::div_mode{
    .name = "div_mode",
    .doc = "The quotient, rounded to zero (\"trunc\"), down (\"floor\") or not (None).",
    .schema = "(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    .aten = "div.Tensor_mode",
    .python = "div divide Tensor.div Tensor.divide",
    .traits = elementwise,
    .raises = Raises::integer_zero,
    .saves = Saves::values,
    .infer =
        [](const Infer& infer) {
          if (infer.attributes.is_none("rounding_mode")) return floating_arithmetic(infer);
          const std::string mode = text_attribute(infer.attributes, "rounding_mode");
          if (mode != "trunc" && mode != "floor")
            infer.fail(janus::cat("unknown rounding mode ", mode));
          return numeric_arithmetic(infer);
        },
    .vjp =
        [](Vjp& g) {
          if (!g.node().attributes.is_none("rounding_mode")) return zero_gradients(g);
          const auto a = in(g, 0), b = in(g, 1), dy = dout(g);
          add_gradient(g, 0, [&] { return dy / b; });
          add_gradient(g, 1, [&] { return -dy * ((a / b) / b); });
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element a = element(k, 0), b = factor_element(k, 1);
      const Attributes& attributes = k.node().attributes;
      if (attributes.is_none("rounding_mode")) return a / b;
      const bool down = text_attribute(attributes, "rounding_mode") == "floor";
      if (down) return floor_quotient(k);
      return maths("trunc", is_single(*k.node().inputs[1]) ? a / b : rounded(a / b));
    },
};

constinit const OpDef op::floor_divide{
    .name = "floor_divide",
    .doc = "The quotient rounded down, as Python's // does.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "floor_divide",
    .python = "floor_divide Tensor.floor_divide",
    .traits = elementwise,
    .raises = Raises::integer_zero,
    .saves = Saves::values,
    .infer = numeric_arithmetic,
    // Eager raises when this gradient is wanted; a refusal leaves that to eager.
    .vjp = [](Vjp&) { throw TypeError("floor_divide: it has no gradient"); },
    .scalar = [](ScalarCode& k) -> Scalar { return floor_quotient(k); },
};

constinit const OpDef op::remainder{
    .name = "remainder",
    .doc = "What Python's % gives: the remainder with the divisor's sign.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "remainder.Tensor",
    .python = "remainder Tensor.remainder",
    .traits = elementwise,
    .raises = Raises::integer_zero,
    .saves = Saves::values,
    .infer = numeric_arithmetic,
    .vjp =
        [](Vjp& g) {
          const auto a = in(g, 0), b = in(g, 1), dy = dout(g);
          // Eager raises, as for floor_divide.
          if (g.needs(1) && !g.in(0)->type.is_tensor())
            throw TypeError("remainder: of a number it has no gradient");
          add_gradient(g, 0, [&] { return dy; });
          add_gradient(
              g, 1, [&] { return -dy * apply(op::div_mode, {{"rounding_mode", "floor"}}, a, b); });
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      return python_remainder(element(k, 0), element(k, 1));
    },
};

constinit const OpDef op::fmod{
    .name = "fmod",
    .doc = "What C's fmod gives: the remainder with the dividend's sign.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "fmod.Tensor",
    .python = "fmod Tensor.fmod",
    .traits = elementwise,
    .raises = Raises::integer_zero,
    .saves = Saves::values,
    .infer = numeric_arithmetic,
    .vjp =
        [](Vjp& g) {
          const auto a = in(g, 0), b = in(g, 1), dy = dout(g);
          add_gradient(g, 0, [&] { return dy; });
          add_gradient(
              g, 1, [&] { return -dy * apply(op::div_mode, {{"rounding_mode", "trunc"}}, a, b); });
        },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("fmod", element(k, 0), element(k, 1)); },
};

constinit const OpDef op::pow_scalar{
    .name = "pow_scalar",
    .doc = "Each element to the power of a number.",
    .schema = "(Tensor self, Scalar exponent) -> Tensor",
    .aten = "pow.Tensor_Scalar",
    .python = "pow Tensor.pow",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = power_of_scalar,
    .fold = [](const Fold& fold) -> Value* {
      return is_constant(fold.inputs[1], 1) ? passed_through(fold, 0) : nullptr;
    },
    .vjp = power_gradient_of_base,
    .scalar = power_element,
};

constinit const OpDef op::pow_base{
    .name = "pow_base",
    .doc = "A number to the power of each element.",
    .schema = "(Scalar self, Tensor exponent) -> Tensor",
    .aten = "pow.Scalar",
    .python = "pow",
    .traits = elementwise,
    .layout = Layout::contiguous_copy,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer =
        [](const Infer& infer) {
          require_number(infer, 0);
          tensor_type(infer, 1);
          return numeric_arithmetic(infer);
        },
    .vjp = power_gradient_of_exponent,
    .scalar = [](ScalarCode& k) -> Scalar {
      return maths("pow", rounded(element(k, 0)), element(k, 1));
    },
};

constinit const OpDef op::pow{
    .name = "pow",
    .doc = "Each element of one tensor to the power of the other's.",
    .schema = "(Tensor self, Tensor exponent) -> Tensor",
    .aten = "pow.Tensor_Tensor",
    .python = "pow Tensor.pow",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::result,
    .infer =
        [](const Infer& infer) {
          tensor_type(infer, 0);
          tensor_type(infer, 1);
          return numeric_arithmetic(infer);
        },
    .vjp =
        [](Vjp& g) {
          power_gradient_of_base(g);
          power_gradient_of_exponent(g);
        },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("pow", element(k, 0), element(k, 1)); },
};

constinit const OpDef op::maximum{
    .name = "maximum",
    .doc = "The larger of two elements; NaN if one is.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "maximum",
    .python = "maximum max Tensor.maximum Tensor.max",
    .traits = elementwise | Trait::commutative,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = tensors_only,
    .vjp = [](Vjp& g) { extremum_gradient(g, op::lt); },
    .scalar = [](ScalarCode& k) { return extremum(k, true); },
};

constinit const OpDef op::minimum{
    .name = "minimum",
    .doc = "The smaller of two elements; NaN if one is.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "minimum",
    .python = "minimum min Tensor.minimum Tensor.min",
    .traits = elementwise | Trait::commutative,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = tensors_only,
    .vjp = [](Vjp& g) { extremum_gradient(g, op::gt); },
    .scalar = [](ScalarCode& k) { return extremum(k, false); },
};

constinit const OpDef op::atan2{
    .name = "atan2",
    .doc = "The angle of the point (other, self).",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "atan2",
    .python = "atan2 arctan2 Tensor.atan2 Tensor.arctan2",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer =
        [](const Infer& infer) {
          tensors_only(infer);
          return floating_arithmetic(infer);
        },
    .vjp =
        [](Vjp& g) {
          const auto y = in(g, 0), x = in(g, 1);
          const auto square = y * y + x * x, dy = dout(g);
          const auto scale =
              apply(op::where, apply(op::eq, square, 0), 0, apply(op::reciprocal, square));
          add_gradient(g, 0, [&] { return dy * x * scale; });
          add_gradient(g, 1, [&] { return dy * -y * scale; });
        },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("atan2", element(k, 0), element(k, 1)); },
};

constinit const OpDef op::xlogy{
    .name = "xlogy",
    .doc = "self * log(other), and 0 where self is 0 and other is not NaN.",
    .schema = "(Tensor self, Tensor other) -> Tensor",
    .aten = "xlogy.Tensor",
    .python = "xlogy special.xlogy Tensor.xlogy",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = floating_arithmetic,
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0), y = in(g, 1), dy = dout(g);
          add_gradient(g, 0, [&] {
            const auto flat = apply(op::logical_and, apply(op::eq, x, 0), apply(op::le, y, 0));
            return apply(op::where, flat, 0, apply(op::xlogy, dy, y));
          });
          add_gradient(g, 1, [&] { return dy * (x / y); });
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element x = element(k, 0), y = element(k, 1);
      const Element log = rounded(maths("log", y));
      return choice(is_nan(y), y, choice(x == 0, 0.0, x * log));
    },
};

constinit const OpDef op::where{
    .name = "where",
    .doc = "Elements of self where the condition holds, of other elsewhere.",
    .schema = "(Tensor condition, Tensor self, Tensor other) -> Tensor",
    .aten = "where.self",
    .python = "where",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .replaces_elements = true,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      if (tensor_type(infer, 0).dtype != DType::b1) infer.fail("the condition must be boolean");
      const DType dtype = promoted(infer, std::array<size_t, 2>{1, 2});
      return {Type::tensor(dtype, broadcast_inputs(infer, three))};
    },
    .vjp =
        [](Vjp& g) {
          const auto condition = in(g, 0), dy = dout(g);
          add_gradient(g, 1, [&] { return apply(op::where, condition, dy, 0); });
          add_gradient(g, 2, [&] { return apply(op::where, condition, 0, dy); });
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      return choice(raw_element(k, 0), element(k, 1), element(k, 2));
    },
};

namespace {

/// The rule of masked_fill and masked_fill_tensor: the filled value where the mask holds.
std::vector<Type> infer_masked_fill(const Infer& infer) {
  const Type& self = tensor_type(infer, 0);
  const Type& mask = tensor_type(infer, 1);
  if (mask.dtype != DType::b1) infer.fail("the mask must be boolean");
  const Type& value = infer.type(2);
  if (value.is_tensor() ? promote(self.dtype, value.dtype) != self.dtype && !is_floating(self.dtype)
                        : !is_floating(self.dtype) && value.kind == Type::Kind::f64)
    infer.fail(janus::cat(value, " does not fit ", self));
  return {Type::tensor(self.dtype, broadcast(infer, self.shape, mask.shape))};
}

void masked_fill_gradient(Vjp& g) {
  add_gradient(g, 0, [&] { return apply(op::masked_fill, dout(g), in(g, 1), 0); });
}

Scalar masked_fill_element(ScalarCode& k) {
  return choice(raw_element(k, 1), element(k, 2), element(k, 0));
}

}  // namespace

constinit const OpDef op::masked_fill{
    .name = "masked_fill",
    .doc = "self, with a number where the mask holds.",
    .schema = "(Tensor self, Tensor mask, Scalar value) -> Tensor",
    .aten = "masked_fill.Scalar",
    .python = "masked_fill Tensor.masked_fill",
    .traits = elementwise,
    .layout = Layout::contiguous_copy,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .replaces_elements = true,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      require_number(infer, 2);
      return infer_masked_fill(infer);
    },
    .vjp = masked_fill_gradient,
    .scalar = masked_fill_element,
};

constinit const OpDef op::masked_fill_tensor{
    .name = "masked_fill_tensor",
    .doc = "self, with the element of a tensor without dimensions where the mask holds.",
    .schema = "(Tensor self, Tensor mask, Tensor value) -> Tensor",
    .aten = "masked_fill.Tensor",
    .python = "masked_fill Tensor.masked_fill",
    .traits = elementwise,
    .layout = Layout::contiguous_copy,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      tensor_of_rank(infer, 2, 0);
      return infer_masked_fill(infer);
    },
    .vjp =
        [](Vjp& g) {
          masked_fill_gradient(g);
          add_gradient(g, 2, [&] { return apply(op::where, in(g, 1), dout(g), 0); });
        },
    .scalar = masked_fill_element,
};

constinit const OpDef op::lerp{
    .name = "lerp",
    .doc = "self + weight * (end - self), from the nearer end.",
    .schema = "(Tensor self, Tensor end, Scalar weight) -> Tensor",
    .aten = "lerp.Scalar",
    .python = "lerp Tensor.lerp",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      require_number(infer, 2);
      const Type& self = floating_tensor(infer, 0);
      const Type& end = floating_tensor(infer, 1);
      if (self.dtype != end.dtype) infer.fail(janus::cat("dtypes differ: ", self, ", ", end));
      return {Type::tensor(self.dtype, broadcast(infer, self.shape, end.shape))};
    },
    .vjp =
        [](Vjp& g) {
          const auto weight = in(g, 2), dy = dout(g);
          add_gradient(g, 0, [&] { return dy * (1 - weight); });
          add_gradient(g, 1, [&] { return dy * weight; });
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element start = element(k, 0), end = element(k, 1), weight = element(k, 2);
      const bool contracts = eager_arithmetic().contracts_lerp;
      const Element from_start = product_and_sum(contracts, weight, end - start, start);
      const Element from_end = product_and_sum(contracts, end - start, weight - 1, end);
      return choice(maths("fabs", weight) < 0.5, from_start, from_end);
    },
};

constinit const OpDef op::addcmul{
    .name = "addcmul",
    .doc = "self + value * tensor1 * tensor2.",
    .schema = "(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    .aten = "addcmul",
    .python = "addcmul Tensor.addcmul",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = fused_product,
    .vjp =
        [](Vjp& g) {
          const auto value = in(g, 3), dy = dout(g);
          add_gradient(g, 0, [&] { return dy; });
          add_gradient(g, 1, [&] { return dy * (in(g, 2) * value); });
          add_gradient(g, 2, [&] { return dy * (in(g, 1) * value); });
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      return product_and_sum(eager_arithmetic().contracts_products, element(k, 3) * element(k, 1),
                             element(k, 2), element(k, 0));
    },
};

constinit const OpDef op::addcdiv{
    .name = "addcdiv",
    .doc = "self + value * tensor1 / tensor2.",
    .schema = "(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    .aten = "addcdiv",
    .python = "addcdiv Tensor.addcdiv",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = fused_quotient,
    .vjp =
        [](Vjp& g) {
          const auto a = in(g, 1), b = in(g, 2), value = in(g, 3), dy = dout(g);
          add_gradient(g, 0, [&] { return dy; });
          add_gradient(g, 1, [&] { return dy * (value / b); });
          add_gradient(g, 2, [&] { return -dy * ((a * value) / (b * b)); });
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      return element(k, 0) + element(k, 3) * element(k, 1) / element(k, 2);
    },
};

}  // namespace janus
