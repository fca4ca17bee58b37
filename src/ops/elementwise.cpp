// Elementwise operators of one tensor: signs, rounding, exponentials, trigonometry, tests for NaN.
// Integers and booleans give f32 if the function is not closed over them. Every rule refuses
// complex tensors, so that torch runs them as opaque operators.
#include <limits>
#include <numbers>

#include "ops/eager_arithmetic.h"
#include "ops/eager_rules.h"
#include "ops/element.h"
#include "ops/expression.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

/// A rounding function: it leaves integers as they are.
Scalar rounded(ScalarCode& k, std::string_view function) {
  const Element x = element(k, 0);
  return is_floating(x.dtype()) ? maths(function, x) : x;
}

/// The gradient of piecewise constant functions: in eager it is zeros, not absent.
void zero_gradient(Vjp& g) { g.add(0, zeros_of(in(g, 0))); }

Scalar floating_test(ScalarCode& k, Element (*test)(const Element&)) {
  const Element x = raw_element(k, 0);
  if (!is_floating(x.dtype())) return k.constant(0, DType::b1);
  return test(x);
}

Element is_infinite(const Element& x) {
  return maths("fabs", x) == std::numeric_limits<double>::infinity();
}

}  // namespace

constinit const OpDef op::neg{
    .name = "neg",
    .doc = "The negative of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "neg",
    .python = "neg negative Tensor.neg Tensor.negative Tensor.__neg__",
    .traits = elementwise | Trait::linear,
    .raises = Raises::never_for_floats,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .cost = Cost::cheap,
    .infer = numeric_like_first,
    .vjp = [](Vjp& g) { g.add(0, -dout(g)); },
    .scalar = [](ScalarCode& k) -> Scalar { return -element(k, 0); },
};

constinit const OpDef op::abs{
    .name = "abs",
    .doc = "The absolute value of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "abs",
    .python = "abs absolute Tensor.abs Tensor.absolute Tensor.__abs__",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .cost = Cost::cheap,
    .infer = numeric_like_first,
    .vjp = [](Vjp& g) { g.add(0, dout(g) * apply(op::sign, in(g, 0))); },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element x = element(k, 0);
      return is_floating(x.dtype()) ? maths("fabs", x) : choice(x < 0, -x, x);
    },
};

constinit const OpDef op::sign{
    .name = "sign",
    .doc = "-1, 0 or 1 by the sign of each element; 0 for NaN.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "sign",
    .python = "sign Tensor.sign",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = numeric_like_first,
    .vjp = zero_gradient,
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element x = element(k, 0);
      return convert(x > 0, x.dtype()) - convert(x < 0, x.dtype());
    },
};

constinit const OpDef op::exp{
    .name = "exp",
    .doc = "e to the power of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "exp",
    .python = "exp Tensor.exp",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::result,
    .infer = floating_like_first,
    .vjp = [](Vjp& g) { g.add(0, dout(g) * out(g)); },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("exp", element(k, 0)); },
};

constinit const OpDef op::exp2{
    .name = "exp2",
    .doc = "2 to the power of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "exp2",
    .python = "exp2 special.exp2 Tensor.exp2",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::result,
    .infer = floating_like_first,
    .vjp = [](Vjp& g) { g.add(0, dout(g) * out(g) * std::numbers::ln2); },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("exp2", element(k, 0)); },
};

constinit const OpDef op::expm1{
    .name = "expm1",
    .doc = "e to the power of each element, minus 1, exact near 0.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "expm1",
    .python = "expm1 special.expm1 Tensor.expm1",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::result,
    .infer = floating_like_first,
    .vjp = [](Vjp& g) { g.add(0, dout(g) * (out(g) + 1)); },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("expm1", element(k, 0)); },
};

constinit const OpDef op::log{
    .name = "log",
    .doc = "The natural logarithm of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "log",
    .python = "log Tensor.log",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = floating_like_first,
    .vjp = [](Vjp& g) { g.add(0, dout(g) / in(g, 0)); },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("log", element(k, 0)); },
};

constinit const OpDef op::log2{
    .name = "log2",
    .doc = "The logarithm to base 2 of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "log2",
    .python = "log2 Tensor.log2",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = floating_like_first,
    .vjp = [](Vjp& g) { g.add(0, dout(g) / (in(g, 0) * std::numbers::ln2)); },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("log2", element(k, 0)); },
};

constinit const OpDef op::log10{
    .name = "log10",
    .doc = "The logarithm to base 10 of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "log10",
    .python = "log10 Tensor.log10",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = floating_like_first,
    .vjp = [](Vjp& g) { g.add(0, dout(g) / (in(g, 0) * eager_rules().log10_divisor)); },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("log10", element(k, 0)); },
};

constinit const OpDef op::log1p{
    .name = "log1p",
    .doc = "The natural logarithm of one plus each element, exact near 0.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "log1p",
    .python = "log1p special.log1p Tensor.log1p",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = floating_like_first,
    .vjp = [](Vjp& g) { g.add(0, dout(g) / (in(g, 0) + 1)); },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("log1p", element(k, 0)); },
};

constinit const OpDef op::sqrt{
    .name = "sqrt",
    .doc = "The square root of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "sqrt",
    .python = "sqrt Tensor.sqrt",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::result,
    .infer = floating_like_first,
    .vjp = [](Vjp& g) { g.add(0, dout(g) / (2 * out(g))); },
    .scalar = [](ScalarCode& k) -> Scalar { return eager_root(element(k, 0)); },
};

constinit const OpDef op::rsqrt{
    .name = "rsqrt",
    .doc = "One over the square root of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "rsqrt",
    .python = "rsqrt Tensor.rsqrt",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::result,
    .infer = floating_like_first,
    .vjp =
        [](Vjp& g) {
          const auto y = out(g);
          g.add(0, -0.5 * dout(g) * (y * y * y));
        },
    .scalar = [](ScalarCode& k) -> Scalar { return 1 / maths("sqrt", element(k, 0)); },
};

constinit const OpDef op::reciprocal{
    .name = "reciprocal",
    .doc = "One over each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "reciprocal",
    .python = "reciprocal Tensor.reciprocal",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::result,
    .infer = floating_like_first,
    .vjp = [](Vjp& g) { g.add(0, -dout(g) * (out(g) * out(g))); },
    .scalar = [](ScalarCode& k) -> Scalar { return 1 / element(k, 0); },
};

constinit const OpDef op::square{
    .name = "square",
    .doc = "Each element times itself.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "square",
    .python = "square Tensor.square",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = numeric_like_first,
    .vjp = [](Vjp& g) { g.add(0, dout(g) * (2 * in(g, 0))); },
    .scalar = [](ScalarCode& k) -> Scalar { return element(k, 0) * element(k, 0); },
};

constinit const OpDef op::sin{
    .name = "sin",
    .doc = "The sine of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "sin",
    .python = "sin Tensor.sin",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = floating_like_first,
    .vjp = [](Vjp& g) { g.add(0, dout(g) * apply(op::cos, in(g, 0))); },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("sin", element(k, 0)); },
};

constinit const OpDef op::cos{
    .name = "cos",
    .doc = "The cosine of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "cos",
    .python = "cos Tensor.cos",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = floating_like_first,
    .vjp = [](Vjp& g) { g.add(0, dout(g) * -apply(op::sin, in(g, 0))); },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("cos", element(k, 0)); },
};

constinit const OpDef op::tan{
    .name = "tan",
    .doc = "The tangent of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "tan",
    .python = "tan Tensor.tan",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::result,
    .infer = floating_like_first,
    .vjp = [](Vjp& g) { g.add(0, dout(g) * (1 + out(g) * out(g))); },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("tan", element(k, 0)); },
};

constinit const OpDef op::asin{
    .name = "asin",
    .doc = "The inverse sine of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "asin",
    .python = "asin arcsin Tensor.asin Tensor.arcsin",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = floating_like_first,
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0);
          g.add(0, dout(g) * apply(op::rsqrt, 1 - x * x));
        },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("asin", element(k, 0)); },
};

constinit const OpDef op::acos{
    .name = "acos",
    .doc = "The inverse cosine of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "acos",
    .python = "acos arccos Tensor.acos Tensor.arccos",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = floating_like_first,
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0);
          g.add(0, dout(g) * -apply(op::rsqrt, 1 - x * x));
        },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("acos", element(k, 0)); },
};

constinit const OpDef op::atan{
    .name = "atan",
    .doc = "The inverse tangent of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "atan",
    .python = "atan arctan Tensor.atan Tensor.arctan",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = floating_like_first,
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0);
          g.add(0, dout(g) / (x * x + 1));
        },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("atan", element(k, 0)); },
};

/// Sine or cosine: the vector functions of f32 are infinite before the results are.
Element hyperbolic(const char* function, const Element& x) {
  const bool is_f32 = x.code()->node().output()->type.dtype == DType::f32;
  if (!is_f32 || !eager_rules().hyperbolic_in_double) return maths(function, x);
  return convert(maths(function, convert(x, DType::f64)), x.dtype());
}

constinit const OpDef op::sinh{
    .name = "sinh",
    .doc = "The hyperbolic sine of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "sinh",
    .python = "sinh Tensor.sinh",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = floating_like_first,
    .vjp = [](Vjp& g) { g.add(0, dout(g) * apply(op::cosh, in(g, 0))); },
    .scalar = [](ScalarCode& k) -> Scalar { return hyperbolic("sinh", element(k, 0)); },
};

constinit const OpDef op::cosh{
    .name = "cosh",
    .doc = "The hyperbolic cosine of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "cosh",
    .python = "cosh Tensor.cosh",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = floating_like_first,
    .vjp = [](Vjp& g) { g.add(0, dout(g) * apply(op::sinh, in(g, 0))); },
    .scalar = [](ScalarCode& k) -> Scalar { return hyperbolic("cosh", element(k, 0)); },
};

constinit const OpDef op::tanh{
    .name = "tanh",
    .doc = "The hyperbolic tangent of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "tanh",
    .python = "tanh Tensor.tanh nn.functional.tanh",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::result,
    .infer = floating_like_first,
    .vjp =
        [](Vjp& g) {
          const auto y = out(g), dy = dout(g);
          g.add(0, dy * (1 - y * y));
        },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("tanh", element(k, 0)); },
};

/// The argument from which on asinh(x) and acosh(x) are log(2 x) to the last digit. The vector
/// functions square x, which overflows for large x.
constexpr double without_square = 1e10;
Element log_of_double(const Element& x) { return maths("log", x) + std::numbers::ln2; }

constinit const OpDef op::asinh{
    .name = "asinh",
    .doc = "The inverse hyperbolic sine of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "asinh",
    .python = "asinh arcsinh Tensor.asinh Tensor.arcsinh",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values_once,
    .infer = floating_like_first,
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0);
          g.add(0, dout(g) * apply(op::rsqrt, x * x + 1));
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element x = element(k, 0), size = maths("fabs", x);
      return choice(size > without_square, maths("copysign", log_of_double(size), x),
                    maths("asinh", x));
    },
};

constinit const OpDef op::acosh{
    .name = "acosh",
    .doc = "The inverse hyperbolic cosine of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "acosh",
    .python = "acosh arccosh Tensor.acosh Tensor.arccosh",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values_once,
    .infer = floating_like_first,
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0);
          g.add(0, dout(g) * apply(op::rsqrt, x * x - 1));
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element x = element(k, 0);
      return choice(x > without_square, log_of_double(x), maths("acosh", x));
    },
};

constinit const OpDef op::atanh{
    .name = "atanh",
    .doc = "The inverse hyperbolic tangent of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "atanh",
    .python = "atanh arctanh Tensor.atanh Tensor.arctanh",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values_once,
    .infer = floating_like_first,
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0);
          g.add(0, dout(g) / (1 - x * x));
        },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("atanh", element(k, 0)); },
};

constinit const OpDef op::erf{
    .name = "erf",
    .doc = "The error function of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "erf",
    .python = "erf special.erf Tensor.erf",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = floating_like_first,
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0);
          g.add(0, 2 * std::numbers::inv_sqrtpi * apply(op::exp, -(x * x)) * dout(g));
        },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("erf", element(k, 0)); },
};

constinit const OpDef op::erfc{
    .name = "erfc",
    .doc = "One minus the error function of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "erfc",
    .python = "erfc special.erfc Tensor.erfc",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = floating_like_first,
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0);
          g.add(0, -2 * std::numbers::inv_sqrtpi * apply(op::exp, -(x * x)) * dout(g));
        },
    .scalar = [](ScalarCode& k) -> Scalar { return maths("erfc", element(k, 0)); },
};

constinit const OpDef op::sigmoid{
    .name = "sigmoid",
    .doc = "The logistic function of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "sigmoid",
    .python = "sigmoid Tensor.sigmoid special.expit nn.functional.sigmoid",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::result,
    .infer = floating_like_first,
    .vjp =
        [](Vjp& g) {
          const auto y = out(g);
          g.add(0, dout(g) * ((1 - y) * y));
        },
    .scalar = [](ScalarCode& k) -> Scalar { return 1 / (1 + maths("exp", -element(k, 0))); },
};

constinit const OpDef op::floor{
    .name = "floor",
    .doc = "The largest integer that is not larger than each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "floor",
    .python = "floor Tensor.floor",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = numeric_like_first,
    .vjp = zero_gradient,
    .scalar = [](ScalarCode& k) { return rounded(k, "floor"); },
};

constinit const OpDef op::ceil{
    .name = "ceil",
    .doc = "The smallest integer that is not smaller than each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "ceil",
    .python = "ceil Tensor.ceil",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = numeric_like_first,
    .vjp = zero_gradient,
    .scalar = [](ScalarCode& k) { return rounded(k, "ceil"); },
};

constinit const OpDef op::trunc{
    .name = "trunc",
    .doc = "Each element without its fraction.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "trunc",
    .python = "trunc fix Tensor.trunc Tensor.fix",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = numeric_like_first,
    .vjp = zero_gradient,
    .scalar = [](ScalarCode& k) { return rounded(k, "trunc"); },
};

constinit const OpDef op::round{
    .name = "round",
    .doc = "The integer nearest to each element, the even one of two.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "round",
    .python = "round Tensor.round",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = numeric_like_first,
    .vjp = zero_gradient,
    .scalar = [](ScalarCode& k) { return rounded(k, "nearbyint"); },
};

constinit const OpDef op::frac{
    .name = "frac",
    .doc = "The fraction of each element, with its sign.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "frac",
    .python = "frac Tensor.frac",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = same_as_floating,
    .vjp = [](Vjp& g) { g.add(0, dout(g)); },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element x = element(k, 0);
      return x - maths("trunc", x);
    },
};

constinit const OpDef op::isnan{
    .name = "isnan",
    .doc = "Whether each element is NaN.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "isnan",
    .python = "isnan Tensor.isnan",
    .traits = elementwise | Trait::no_gradient,
    .raises = Raises::never_for_floats,
    .infer = boolean_like_first,
    .scalar = [](ScalarCode& k) { return floating_test(k, is_nan); },
};

constinit const OpDef op::isinf{
    .name = "isinf",
    .doc = "Whether each element is infinite.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "isinf",
    .python = "isinf Tensor.isinf",
    .traits = elementwise | Trait::no_gradient,
    .raises = Raises::never_for_floats,
    .infer = boolean_like_first,
    .scalar = [](ScalarCode& k) { return floating_test(k, is_infinite); },
};

constinit const OpDef op::isfinite{
    .name = "isfinite",
    .doc = "Whether each element is neither NaN nor infinite.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "isfinite",
    .python = "isfinite Tensor.isfinite",
    .traits = elementwise | Trait::no_gradient,
    .raises = Raises::never_for_floats,
    .infer = boolean_like_first,
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element x = raw_element(k, 0);
      if (!is_floating(x.dtype())) return k.constant(1, DType::b1);
      return maths("fabs", x) < std::numeric_limits<double>::infinity();
    },
};

}  // namespace janus
