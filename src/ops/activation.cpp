// Elementwise activation functions, and softmax along a dimension. NaN passes through all of them,
// as in eager. Where nn.functional has other parameters than the operator, a composite with the
// prefix `functional_` has its signature.
#include <limits>
#include <numbers>

#include "ops/eager_arithmetic.h"
#include "ops/eager_rules.h"
#include "ops/element.h"
#include "ops/expression.h"
#include "ops/row_rules.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

/// The result type of clamping: the promotion of all operands that are given.
std::vector<Type> clamped(const Infer& infer) {
  std::vector<size_t> present;
  Shape shape;
  for (size_t i = 0; i < infer.inputs.size(); ++i) {
    const Type& type = infer.type(i);
    if (type.is_none()) continue;
    present.push_back(i);
    if (type.is_tensor()) shape = broadcast(infer, shape, tensor_type(infer, i).shape);
  }
  tensor_type(infer, 0);
  if (present.size() < 2) infer.fail("at least one of min and max must be given");
  const DType dtype = promoted(infer, present);
  if (dtype == DType::b1) infer.fail("boolean operand");
  return {Type::tensor(dtype, shape)};
}

/// Whether the bound can be NaN: a literal can't.
bool can_be_nan(const Element& bound, const Element& x) {
  return bound.code() != nullptr && is_floating(x.dtype());
}

/// The lower bound, which is applied before the upper one: max wins where they cross. A NaN bound
/// gives NaN.
Element at_least(const Element& x, const Element& bound) {
  const Element larger = choice(x < bound, bound, x);
  return can_be_nan(bound, x) ? choice(is_nan(bound), bound, larger) : larger;
}
Element at_most(const Element& x, const Element& bound) {
  const Element smaller = choice(x > bound, bound, x);
  return can_be_nan(bound, x) ? choice(is_nan(bound), bound, smaller) : smaller;
}

Element elu_program(const Element& x, const Element& alpha, const Element& scale,
                    const Element& inner) {
  const Element below = maths("expm1", x * inner) * (alpha * scale);
  return choice(x < 0, below, x * scale);
}

void elu_gradient(Vjp& g, const Expression& alpha, const Expression& scale,
                  const Expression& inner) {
  const auto x = in(g, 0), dy = dout(g);
  const auto below = dy * inner * (alpha * scale) * apply(op::exp, x * inner);
  g.add(0, apply(op::where, apply(op::gt, x, 0), dy * scale, below));
}

/// 1 / alpha, which eager rounds to float32 in the gradient only.
Expression celu_gradients_scale(Vjp& g) {
  const auto alpha = constant_number(g.in(1));
  if (!alpha) return 1 / in(g, 1);
  const double rounded = static_cast<float>(*alpha);
  return {g.builder(), g.builder().constant(1 / rounded)};
}

Scalar clamp_program(ScalarCode& k) {
  Element x = element(k, 0);
  if (!k.node().inputs[1]->type.is_none()) x = at_least(x, element(k, 1));
  if (!k.node().inputs[2]->type.is_none()) x = at_most(x, element(k, 2));
  return x;
}

/// With tensors as bounds, eager returns the bound if it equals x: visible in the sign of zero.
Scalar clamp_tensor_program(ScalarCode& k) {
  Element x = element(k, 0);
  const auto keep = [&](const Element& inside) {
    return is_floating(x.dtype()) ? inside | is_nan(x) : inside;
  };
  if (!k.node().inputs[1]->type.is_none()) {
    const Element bound = element(k, 1);
    x = choice(keep(x > bound), x, bound);
  }
  if (!k.node().inputs[2]->type.is_none()) {
    const Element bound = element(k, 2);
    x = choice(keep(x < bound), x, bound);
  }
  return x;
}

Expression within(const Vjp& g, const OpDef& compare, size_t bound) {
  return apply(compare, in(g, 0), in(g, bound));
}

/// An operand that equals a bound has the whole gradient.
void clamp_gradient_of_operand(Vjp& g) {
  const auto dy = dout(g);
  const bool low = !in(g, 1).is_none(), high = !in(g, 2).is_none();
  add_gradient(g, 0, [&] {
    Expression kept = low ? within(g, op::ge, 1) : within(g, op::le, 2);
    if (low && high) kept = apply(op::logical_and, kept, within(g, op::le, 2));
    return apply(op::where, kept, dy, 0);
  });
  if (low && in(g, 1).type().is_tensor())
    add_gradient(g, 1, [&] {
      Expression taken = within(g, op::lt, 1);
      if (high) taken = apply(op::logical_and, taken, apply(op::lt, in(g, 1), in(g, 2)));
      return apply(op::where, taken, dy, 0);
    });
  if (high && in(g, 2).type().is_tensor())
    add_gradient(g, 2, [&] {
      Expression taken = within(g, op::gt, 2);
      if (low) taken = apply(op::logical_or, taken, apply(op::gt, in(g, 1), in(g, 2)));
      return apply(op::where, taken, dy, 0);
    });
}

/// Numbers as bounds: only what lies between them has a gradient.
void strict_clamp_gradient(Vjp& g) {
  const bool low = !in(g, 1).is_none(), high = !in(g, 2).is_none();
  add_gradient(g, 0, [&] {
    Expression kept = low ? within(g, op::gt, 1) : within(g, op::lt, 2);
    if (low && high) kept = apply(op::logical_and, kept, within(g, op::lt, 2));
    return apply(op::where, kept, dout(g), 0);
  });
}

/// A tensor as the only bound, which is input `bound`: `loses` compares an operand that the bound
/// takes the place of.
void shared_clamp_gradient(Vjp& g, size_t bound, const OpDef& loses) {
  const auto dy = dout(g), x = in(g, 0), limit = in(g, bound);
  const auto share = [&](const Expression& mine, const Expression& other) {
    const auto tie = apply(op::where, apply(op::eq, mine, other), dy / 2, dy);
    return apply(op::where, apply(loses, mine, other), 0, tie);
  };
  add_gradient(g, 0, [&] { return share(x, limit); });
  add_gradient(g, bound, [&] { return share(limit, x); });
}

/// Two tensors as bounds. Where they cross, the upper one is the result.
void shared_clamp_gradient(Vjp& g) {
  const auto dy = dout(g), x = in(g, 0), low = in(g, 1), high = in(g, 2);
  const auto both = [](const Expression& a, const Expression& b) {
    return apply(op::logical_and, a, b);
  };
  const auto either = [](const Expression& a, const Expression& b) {
    return apply(op::logical_or, a, b);
  };
  const auto below = apply(op::lt, x, low), above = apply(op::gt, x, high);
  const auto at_low = apply(op::eq, x, low), at_high = apply(op::eq, x, high);
  const auto is_range = apply(op::lt, low, high), is_ordered = apply(op::le, low, high);
  const auto taken = [&](const Expression& all, const Expression& half) {
    const auto tie = apply(op::where, both(half, is_range), dy / 2, 0);
    return apply(op::where, all, dy, tie);
  };
  add_gradient(g, 0, [&] {
    const auto inside = apply(op::where, both(either(at_low, at_high), is_range), dy / 2, dy);
    return apply(op::where, either(below, above), 0, inside);
  });
  add_gradient(g, 1, [&] { return taken(both(below, is_ordered), at_low); });
  const auto crossed = apply(op::gt, low, high);
  add_gradient(g, 2, [&] { return taken(either(both(above, is_ordered), crossed), at_high); });
}

void clamp_gradient(Vjp& g) {
  if (!eager_rules().clamp_shares_ties) return clamp_gradient_of_operand(g);
  const bool low = in(g, 1).type().is_tensor(), high = in(g, 2).type().is_tensor();
  if (low && high) return shared_clamp_gradient(g);
  if (low) return shared_clamp_gradient(g, 1, op::lt);
  if (high) return shared_clamp_gradient(g, 2, op::gt);
  strict_clamp_gradient(g);
}

constexpr double gelu_slope = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2/pi)
constexpr double gelu_cubic = 0.044715;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// That the node keeps its result, which it wrote over its operand: what it is made of does too.
Attributes saved_results(const Node& node) {
  const AttributeValue* const flags = node.attributes.find("_saves_results");
  return flags == nullptr ? Attributes{} : Attributes{{"_saves_results", *flags}};
}

/// The formula of gelu. Eager calls no library for a tensor of one element.
Gelu gelu_of(const Type& type) {
  const auto ask = eager_arithmetic().gelu;
  return ask == nullptr || element_count(type.shape).is(1) ? Gelu::scaled_first : ask(type.dtype);
}

Scalar gelu_program(ScalarCode& k) {
  const Element x = element(k, 0);
  if (text_attribute(k.node().attributes, "approximate") == "tanh")
    return 0.5 * x * (1 + maths("tanh", gelu_slope * (x + gelu_cubic * (x * x * x))));
  const Element error = maths("erf", x * (1 / std::numbers::sqrt2)), half = x * 0.5;
  switch (gelu_of(k.node().output()->type)) {
    case Gelu::scaled_first:
      return half * (1 + error);
    case Gelu::scaled_last:
      return choice(x == infinity, std::numeric_limits<double>::quiet_NaN(), x * (1 + error) * 0.5);
    case Gelu::halves_summed:
      return half + half * error;
  }
  return half;
}

Expression gelu_derivative(const Expression& x, bool tanh) {
  if (tanh) {
    const auto t = apply(op::tanh, gelu_slope * (x + gelu_cubic * (x * x * x)));
    const auto inner = gelu_slope * (1 + 3 * gelu_cubic * (x * x));
    return 0.5 * (1 + t) + 0.5 * x * ((1 - t * t) * inner);
  }
  const auto below = 0.5 * (1 + apply(op::erf, x * (1 / std::numbers::sqrt2)));
  const double density = 0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2;
  return below + x * (density * apply(op::exp, -0.5 * (x * x)));
}

std::vector<Type> along_dimension(const Infer& infer) {
  const Type& type = floating_tensor(infer, 0);
  wrap_dim(infer, integer_attribute(infer.attributes, "dim"), type.rank());
  return {type};
}

std::vector<Type> backward_along_dimension(const Infer& infer) {
  const Type& type = floating_tensor(infer, 1);
  if (!(floating_tensor(infer, 0) == type)) infer.fail("gradient and result differ in type");
  return {type};
}

std::vector<Type> infer_glu(const Infer& infer) {
  const Type& type = floating_tensor(infer, 0);
  if (type.shape.empty()) infer.fail("a tensor without dimensions");
  const int64_t dim = wrap_dim(infer, integer_attribute(infer.attributes, "dim"), type.rank());
  Shape shape = type.shape;
  Dim& size = shape[static_cast<size_t>(dim)];
  if (!(graph::remainder(size, 2) == Dim(0))) infer.fail(cat("two halves of ", size));
  size = graph::floor_divide(size, 2);
  return {Type::tensor(type.dtype, shape)};
}

std::vector<Value*> decompose_glu(const Decompose& d) {
  const auto x = in(d, 0);
  const int64_t dim = wrap_dim(integer_attribute(d.node.attributes, "dim"), x.rank());
  const Dim& whole = x.shape()[static_cast<size_t>(dim)];
  const Dim& half = d.node.output()->type.shape[static_cast<size_t>(dim)];
  return {sliced(x, dim, 0, half) * apply(op::sigmoid, sliced(x, dim, half, whole))};
}

/// One slope, or one for each channel (dimension 1).
std::vector<Type> infer_prelu(const Infer& infer) {
  const Type& type = floating_tensor(infer, 0);
  const Type& weight = floating_tensor(infer, 1);
  if (weight.dtype != type.dtype || weight.rank() > 1) infer.fail(cat("weight ", weight));
  if (element_count(weight.shape).is(1)) return {type};
  if (type.rank() < 2) infer.fail(cat("weight ", weight, " for ", type));
  require_equal(infer, weight.shape[0], type.shape[1], "channels");
  return {type};
}

std::vector<Value*> decompose_prelu(const Decompose& d) {
  const auto x = in(d, 0), weight = in(d, 1);
  const bool single = element_count(weight.shape()).is(1);
  const auto slope = single ? reshaped(weight, {}) : along(weight, 1, x.rank());
  const auto is_above = apply(op::gt, x, 0);
  // What is above 0 has no part in the slope's gradient, be it infinite.
  return {apply(op::where, is_above, x, slope * apply(op::where, is_above, 0, x))};
}

/// The sum along the operator's dimension, kept.
Expression sum_along(const Node& node, const Expression& x) {
  const int64_t dims[] = {wrap_dim(integer_attribute(node.attributes, "dim"), x.rank())};
  return sum_over(x, dims, true);
}

Expression softmax_backward(const Node& node, const OpDef& op, const Expression& dy,
                            const Expression& y) {
  return apply(op, {{"dim", *node.attributes.find("dim")}, {"input_dtype", y.dtype()}}, dy, y);
}

// Decompositions of the native operators, for fusion.

Expression maximum_along(const Node& node, const Expression& x) {
  const Shape dims =
      x.rank() == 0 ? Shape{} : Shape{Dim(integer_attribute(node.attributes, "dim"))};
  return apply(op::amax, {{"dim", dims}, {"keepdim", true}}, x);
}

std::vector<Value*> softmax_in_parts(const Decompose& d) {
  const auto x = in(d, 0);
  const auto y = apply(op::exp, x - maximum_along(d.node, x));
  return {y / sum_along(d.node, y)};
}

/// In half precision, with the last dimension as a row, eager rounds the sum and its logarithm. x
/// is float32 then.
std::vector<Value*> log_softmax_in_parts(const Decompose& d) {
  const auto x = in(d, 0);
  const int64_t dim = wrap_dim(integer_attribute(d.node.attributes, "dim"), x.rank());
  const DType stored = dim + 1 < x.rank() ? x.dtype() : d.node.inputs[0]->type.dtype;
  const auto shifted = x - maximum_along(d.node, x);
  const auto total = rounded(sum_along(d.node, apply(op::exp, shifted)), stored);
  return {shifted - rounded(apply(op::log, total), stored)};
}

std::vector<Value*> softmax_backward_in_parts(const Decompose& d) {
  const auto dy = in(d, 0), y = in(d, 1);
  return {(dy - sum_along(d.node, dy * y)) * y};
}

std::vector<Value*> log_softmax_backward_in_parts(const Decompose& d) {
  const auto dy = in(d, 0), y = in(d, 1);
  return {dy - apply(op::exp, y) * sum_along(d.node, dy)};
}

/// Casts to the dtype attribute, if there is one, and applies the native operator.
std::vector<Value*> decompose_softmax(const Decompose& d, const OpDef& native) {
  Expression x = in(d, 0);
  if (const auto dtype = dtype_attribute(d.node.attributes)) x = cast(x, *dtype);
  return {apply(native, {{"dim", *d.node.attributes.find("dim")}, {"half_to_float", false}}, x)};
}

std::vector<Type> softmax_type(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  if (infer.attributes.is_none("dim")) infer.fail("dim must be given");
  wrap_dim(infer, integer_attribute(infer.attributes, "dim"), type.rank());
  const DType dtype = dtype_attribute(infer.attributes).value_or(type.dtype);
  if (!is_floating(dtype)) infer.fail(cat("not floating: ", type));
  return {Type::tensor(dtype, type.shape)};
}

}  // namespace

constinit const OpDef op::relu{
    .name = "relu",
    .doc = "Each element, or 0 where it is negative.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "relu",
    .python = "relu Tensor.relu nn.functional.relu",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .cost = Cost::cheap,
    .infer = numeric_like_first,
    .vjp = [](Vjp& g) { g.add(0, apply(op::threshold_backward, dout(g), out(g), 0)); },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element x = element(k, 0);
      return choice(x < 0, 0.0, x);
    },
};

constinit const OpDef op::threshold_backward{
    .name = "threshold_backward",
    .doc = "The gradient, or 0 where self is not above the threshold.",
    .schema = "(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    .aten = "threshold_backward",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      if (!(floating_tensor(infer, 0) == floating_tensor(infer, 1)))
        infer.fail("gradient and operand differ in type");
      return {infer.type(0)};
    },
    .vjp =
        [](Vjp& g) {
          if (g.needs(0)) g.add(0, apply(op::threshold_backward, dout(g), in(g, 1), in(g, 2)));
          if (g.needs(1)) g.add(1, zeros_of(in(g, 1)));
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      return choice(element(k, 1) <= element(k, 2), 0.0, element(k, 0));
    },
};

constinit const OpDef op::threshold{
    .name = "threshold",
    .doc = "Each element, or `value` where it is not above the threshold.",
    .schema = "(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    .aten = "threshold",
    .python = "threshold nn.functional.threshold",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = same_as_floating,
    .vjp = [](Vjp& g) { g.add(0, apply(op::threshold_backward, dout(g), in(g, 0), in(g, 1))); },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element x = element(k, 0);
      return choice(x <= element(k, 1), element(k, 2), x);
    },
};

constinit const OpDef op::leaky_relu{
    .name = "leaky_relu",
    .doc = "Each element, times the slope where it is not positive.",
    .schema = "(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    .aten = "leaky_relu",
    .python = "nn.functional.leaky_relu _C._nn.leaky_relu",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::result_in_place,
    .infer = same_as_floating,
    .vjp =
        [](Vjp& g) {
          const auto dy = dout(g);
          g.add(0, apply(op::where, apply(op::gt, in(g, 0), 0), dy, dy * in(g, 1)));
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element x = element(k, 0);
      return choice(x > 0, x, x * element(k, 1));
    },
};

constinit const OpDef op::elu{
    .name = "elu",
    .doc = "Each element where it is positive, else alpha * (exp(x) - 1), scaled.",
    .schema = "(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    .aten = "elu",
    .python = "_C._nn.elu",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::result_in_place,
    .infer = same_as_floating,
    .vjp = [](Vjp& g) { elu_gradient(g, in(g, 1), in(g, 2), in(g, 3)); },
    .scalar = [](ScalarCode& k) -> Scalar {
      return elu_program(element(k, 0), element(k, 1), element(k, 2), element(k, 3));
    },
};

constinit const OpDef op::functional_elu{
    .name = "functional_elu",
    .doc = "elu without scales.",
    .schema = "(Tensor input, Scalar alpha=1.0) -> Tensor",
    .python = "nn.functional.elu",
    .traits = Trait::pure | Trait::composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::result_in_place,
    .infer = same_as_floating,
    .decompose = [](const Decompose& d) -> std::vector<Value*> {
      return {apply(op::elu, saved_results(d.node), in(d, 0), in(d, 1), 1, 1)};
    },
};

constinit const OpDef op::selu{
    .name = "selu",
    .doc = "elu with the constants that keep mean and variance.",
    .schema = "(Tensor self) -> Tensor",
    .python = "selu nn.functional.selu",
    .traits = Trait::pure | Trait::composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::result_in_place,
    .infer = same_as_floating,
    .decompose = [](const Decompose& d) -> std::vector<Value*> {
      return {apply(op::elu, saved_results(d.node), in(d, 0), 1.6732632423543772848170429916717,
                    1.0507009873554804934193349852946, 1.0)};
    },
};

constinit const OpDef op::celu{
    .name = "celu",
    .doc = "elu that is continuously differentiable for every alpha.",
    .schema = "(Tensor self, Scalar alpha=1.0) -> Tensor",
    .aten = "celu",
    .python = "celu nn.functional.celu",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::result_in_place,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      if (constant_number(infer.inputs[1]).value_or(0) == 0)
        infer.fail("alpha is not known to be other than 0");
      return same_as_floating(infer);
    },
    .vjp = [](Vjp& g) { elu_gradient(g, in(g, 1), 1.0, celu_gradients_scale(g)); },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element inner = 1 / convert(raw_element(k, 1), DType::f64);
      return elu_program(element(k, 0), element(k, 1), 1.0, convert(inner, k.compute_type()));
    },
};

constinit const OpDef op::silu{
    .name = "silu",
    .doc = "Each element times its logistic function.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "silu",
    .python = "nn.functional.silu _C._nn.silu",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = same_as_floating,
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0), s = apply(op::sigmoid, x);
          g.add(0, dout(g) * (s * (1 + x * (1 - s))));
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element x = element(k, 0);
      return x / (1 + maths("exp", -x));
    },
};

constinit const OpDef op::mish{
    .name = "mish",
    .doc = "Each element times tanh(softplus(x)).",
    .schema = "(Tensor self) -> Tensor",
    .aten = "mish",
    .python = "nn.functional.mish _C._nn.mish",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = same_as_floating,
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0), s = apply(op::sigmoid, x);
          const auto t = apply(op::tanh, apply(op::softplus, x));
          g.add(0, dout(g) * (t + x * (s * (1 - t * t))));
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element x = element(k, 0);
      return x * maths("tanh", maths("log1p", maths("exp", x)));
    },
};

constinit const OpDef op::gelu{
    .name = "gelu",
    .doc = "Each element times the normal distribution's cumulative, exact or by tanh.",
    .schema = "(Tensor self, *, str approximate=\"none\") -> Tensor",
    .aten = "gelu",
    .python = "nn.functional.gelu _C._nn.gelu",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer =
        [](const Infer& infer) {
          const std::string how = text_attribute(infer.attributes, "approximate");
          if (how != "none" && how != "tanh") infer.fail(janus::cat("unknown approximation ", how));
          return same_as_floating(infer);
        },
    .vjp =
        [](Vjp& g) {
          const bool tanh = text_attribute(g.node().attributes, "approximate") == "tanh";
          g.add(0, dout(g) * gelu_derivative(in(g, 0), tanh));
        },
    .scalar = gelu_program,
};

constinit const OpDef op::softplus{
    .name = "softplus",
    .doc = "log(1 + exp(beta * x)) / beta, and x where beta * x is above the threshold.",
    .schema = "(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    .aten = "softplus",
    .python = "nn.functional.softplus _C._nn.softplus",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = same_as_floating,
    .vjp =
        [](Vjp& g) {
          const auto dy = dout(g), scaled = in(g, 0) * in(g, 1);
          const auto linear = apply(op::gt, scaled, in(g, 2));
          g.add(0, apply(op::where, linear, dy, dy * apply(op::sigmoid, scaled)));
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element x = element(k, 0), beta = element(k, 1), scaled = x * beta;
      return choice(scaled > element(k, 2), x, maths("log1p", maths("exp", scaled)) / beta);
    },
};

constinit const OpDef op::log_sigmoid{
    .name = "log_sigmoid",
    .doc = "The logarithm of the logistic function of each element.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "log_sigmoid",
    .python = "nn.functional.logsigmoid _C._nn.log_sigmoid",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = same_as_floating,
    .vjp = [](Vjp& g) { g.add(0, dout(g) * apply(op::sigmoid, -in(g, 0))); },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element x = element(k, 0);
      return choice(x < 0, x, 0.0) - maths("log1p", maths("exp", -maths("fabs", x)));
    },
};

constinit const OpDef op::hardtanh{
    .name = "hardtanh",
    .doc = "Each element brought into [min_val, max_val].",
    .schema = "(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    .aten = "hardtanh",
    .python = "_C._nn.hardtanh",  // nn.functional's compares the bounds first
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = same_as_floating,
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0);
          const auto inside =
              apply(op::logical_and, apply(op::gt, x, in(g, 1)), apply(op::lt, x, in(g, 2)));
          g.add(0, apply(op::where, inside, dout(g), 0));
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      return at_most(at_least(element(k, 0), element(k, 1)), element(k, 2));
    },
};

constinit const OpDef op::relu6{
    .name = "relu6",
    .doc = "Each element brought into [0, 6].",
    .schema = "(Tensor self) -> Tensor",
    .python = "nn.functional.relu6 _C._nn.relu6",
    .traits = Trait::pure | Trait::composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = same_as_floating,
    .decompose = [](const Decompose& d) -> std::vector<Value*> {
      return {apply(op::hardtanh, in(d, 0), 0, 6)};
    },
};

constinit const OpDef op::hardsigmoid{
    .name = "hardsigmoid",
    .doc = "(x + 3) / 6 brought into [0, 1].",
    .schema = "(Tensor self) -> Tensor",
    .aten = "hardsigmoid",
    .python = "nn.functional.hardsigmoid _C._nn.hardsigmoid",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = same_as_floating,
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0);
          const auto inside = apply(op::logical_and, apply(op::gt, x, -3), apply(op::lt, x, 3));
          constexpr double sixth = 1.0F / 6.0F;  // eager's constant, also for f64
          g.add(0, apply(op::where, inside, dout(g) * sixth, 0));
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      return at_most(at_least(element(k, 0) + 3, 0.0), 6.0) / 6;
    },
};

constinit const OpDef op::hardswish{
    .name = "hardswish",
    .doc = "Each element times its hardsigmoid.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "hardswish",
    .python = "nn.functional.hardswish _C._nn.hardswish",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = same_as_floating,
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0), dy = dout(g);
          const auto middle = apply(op::where, apply(op::ge, x, 3), dy, dy * (x / 3 + 0.5));
          g.add(0, apply(op::where, apply(op::le, x, -3), 0, middle));
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element x = element(k, 0);
      return x * at_most(at_least(x + 3, 0.0), 6.0) / 6;
    },
};

constinit const OpDef op::softsign{
    .name = "softsign",
    .doc = "x / (1 + |x|).",
    .schema = "(Tensor input) -> Tensor",
    .python = "nn.functional.softsign",
    .traits = Trait::pure | Trait::composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = same_as_floating,
    .decompose = [](const Decompose& d) -> std::vector<Value*> {
      return {in(d, 0) / (apply(op::abs, in(d, 0)) + 1)};
    },
};

constinit const OpDef op::tanhshrink{
    .name = "tanhshrink",
    .doc = "x - tanh(x).",
    .schema = "(Tensor input) -> Tensor",
    .python = "nn.functional.tanhshrink",
    .traits = Trait::pure | Trait::composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = same_as_floating,
    .decompose = [](const Decompose& d) -> std::vector<Value*> {
      return {in(d, 0) - apply(op::tanh, in(d, 0))};
    },
};

constinit const OpDef op::glu{
    .name = "glu",
    .doc = "The first half along a dimension times the logistic function of the second.",
    .schema = "(Tensor self, int dim=-1) -> Tensor",
    .python = "nn.functional.glu _C._nn.glu",
    .traits = Trait::pure | Trait::composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_glu,
    .decompose = decompose_glu,
};

constinit const OpDef op::prelu{
    .name = "prelu",
    .doc = "Each element, times a slope that is a parameter where it is not positive.",
    .schema = "(Tensor self, Tensor weight) -> Tensor",
    .python = "prelu Tensor.prelu nn.functional.prelu",
    .traits = Trait::pure | Trait::composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::lower,
    .infer = infer_prelu,
    .decompose = decompose_prelu,
};

constinit const OpDef op::clamp{
    .name = "clamp",
    .doc = "Each element brought into [min, max]; a bound may be None.",
    .schema = "(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    .aten = "clamp",
    .python = "clamp clip Tensor.clamp Tensor.clip",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .half_gradient = HalfGradient::stepwise,
    .infer =
        [](const Infer& infer) {
          require_number(infer, 1);
          require_number(infer, 2);
          return clamped(infer);
        },
    .vjp = clamp_gradient,
    .scalar = clamp_program,
};

constinit const OpDef op::clamp_tensor{
    .name = "clamp_tensor",
    .doc = "clamp with tensors as bounds.",
    .schema = "(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    .aten = "clamp.Tensor",
    .python = "clamp clip Tensor.clamp Tensor.clip",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer =
        [](const Infer& infer) {
          for (const size_t bound : {1, 2})
            if (!infer.type(bound).is_none()) tensor_type(infer, bound);
          return clamped(infer);
        },
    .vjp = clamp_gradient,
    .scalar = clamp_tensor_program,
};

constinit const OpDef op::clamp_min{
    .name = "clamp_min",
    .doc = "Each element, or the bound where it is less.",
    .schema = "(Tensor self, Scalar min) -> Tensor",
    .aten = "clamp_min",
    .python = "clamp_min Tensor.clamp_min",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .half_gradient = HalfGradient::stepwise,
    .infer = clamped,
    .vjp =
        [](Vjp& g) {
          const OpDef& keeps = eager_rules().clamp_shares_ties ? op::gt : op::ge;
          add_gradient(g, 0, [&] { return apply(op::where, within(g, keeps, 1), dout(g), 0); });
        },
    .scalar = [](ScalarCode& k) -> Scalar { return at_least(element(k, 0), element(k, 1)); },
};

constinit const OpDef op::clamp_max{
    .name = "clamp_max",
    .doc = "Each element, or the bound where it is more.",
    .schema = "(Tensor self, Scalar max) -> Tensor",
    .aten = "clamp_max",
    .python = "clamp_max Tensor.clamp_max",
    .traits = elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .half_gradient = HalfGradient::stepwise,
    .infer = clamped,
    .vjp =
        [](Vjp& g) {
          const OpDef& keeps = eager_rules().clamp_shares_ties ? op::lt : op::le;
          add_gradient(g, 0, [&] { return apply(op::where, within(g, keeps, 1), dout(g), 0); });
        },
    .scalar = [](ScalarCode& k) -> Scalar { return at_most(element(k, 0), element(k, 1)); },
};

constinit const OpDef op::softmax_native{
    .name = "_softmax",
    .doc = "exp(x) over its sum along a dimension.",
    .schema = "(Tensor self, int dim, bool half_to_float) -> Tensor",
    .aten = "_softmax",
    .raises = Raises::never_for_floats,
    .saves = Saves::result,
    .reduces = Reduces::one,
    .rounds = Rounds::within_but_along_last,
    .infer = along_dimension,
    .vjp =
        [](Vjp& g) {
          g.add(0, softmax_backward(g.node(), op::softmax_backward_data, dout(g), out(g)));
        },
    .decompose = softmax_in_parts,
    .rows = for_rows::along_dim,
};

constinit const OpDef op::softmax_backward_data{
    .name = "_softmax_backward_data",
    .doc = "Gradient of _softmax, from its result.",
    .schema = "(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    .aten = "_softmax_backward_data",
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .reduces = Reduces::one,
    .rounds = Rounds::at_the_end,
    .infer = backward_along_dimension,
    .vjp =
        [](Vjp& g) {
          const auto dy = in(g, 0), y = in(g, 1), u = dout(g);
          if (g.needs(0)) g.add(0, softmax_backward(g.node(), op::softmax_backward_data, u, y));
          if (g.needs(1))
            g.add(1, u * (dy - sum_along(g.node(), dy * y)) - dy * sum_along(g.node(), u * y));
        },
    .decompose = softmax_backward_in_parts,
    .rows = for_rows::along_dim_of_all,
};

constinit const OpDef op::log_softmax_native{
    .name = "_log_softmax",
    .doc = "The logarithm of softmax along a dimension.",
    .schema = "(Tensor self, int dim, bool half_to_float) -> Tensor",
    .aten = "_log_softmax",
    .raises = Raises::never_for_floats,
    .saves = Saves::result,
    .reduces = Reduces::one,
    .rounds = Rounds::at_the_end,
    .infer = along_dimension,
    .vjp =
        [](Vjp& g) {
          g.add(0, softmax_backward(g.node(), op::log_softmax_backward_data, dout(g), out(g)));
        },
    .decompose = log_softmax_in_parts,
    .rows = for_rows::along_dim,
};

constinit const OpDef op::log_softmax_backward_data{
    .name = "_log_softmax_backward_data",
    .doc = "Gradient of _log_softmax, from its result.",
    .schema = "(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    .aten = "_log_softmax_backward_data",
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .reduces = Reduces::one,
    .rounds = Rounds::at_the_end,
    .infer = backward_along_dimension,
    .vjp =
        [](Vjp& g) {
          const auto dy = in(g, 0), u = dout(g), p = apply(op::exp, in(g, 1));
          if (g.needs(0)) g.add(0, u - sum_along(g.node(), u * p));
          if (g.needs(1)) g.add(1, -(u * p) * sum_along(g.node(), dy));
        },
    .decompose = log_softmax_backward_in_parts,
    .rows = for_rows::along_dim_of_all,
};

constinit const OpDef op::softmax{
    .name = "softmax",
    .doc = "Softmax along a dimension, computed in `dtype` if it is given.",
    .schema = "(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    .python = "softmax Tensor.softmax",
    .traits = Trait::pure | Trait::composite,
    .layout = Layout::contiguous,
    .raises = Raises::not_for_contents,
    .saves = Saves::result,
    .half_gradient = HalfGradient::at_once,
    .infer = softmax_type,
    .decompose = [](const Decompose& d) { return decompose_softmax(d, op::softmax_native); },
};

constinit const OpDef op::log_softmax{
    .name = "log_softmax",
    .doc = "The logarithm of softmax along a dimension, computed in `dtype` if it is given.",
    .schema = "(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    .python = "log_softmax Tensor.log_softmax",
    .traits = Trait::pure | Trait::composite,
    .layout = Layout::contiguous,
    .raises = Raises::not_for_contents,
    .saves = Saves::result,
    .half_gradient = HalfGradient::at_once,
    .infer = softmax_type,
    .decompose = [](const Decompose& d) { return decompose_softmax(d, op::log_softmax_native); },
};

constinit const OpDef op::functional_softmax{
    .name = "functional_softmax",
    .doc = "softmax with nn.functional's parameters.",
    .schema = "(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor",
    .python = "nn.functional.softmax",
    .traits = Trait::pure | Trait::composite,
    .layout = Layout::contiguous,
    .raises = Raises::not_for_contents,
    .saves = Saves::result,
    .infer = softmax_type,
    .decompose = [](const Decompose& d) { return decompose_softmax(d, op::softmax_native); },
};

constinit const OpDef op::functional_log_softmax{
    .name = "functional_log_softmax",
    .doc = "log_softmax with nn.functional's parameters.",
    .schema = "(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor",
    .python = "nn.functional.log_softmax",
    .traits = Trait::pure | Trait::composite,
    .layout = Layout::contiguous,
    .raises = Raises::not_for_contents,
    .saves = Saves::result,
    .infer = softmax_type,
    .decompose = [](const Decompose& d) { return decompose_softmax(d, op::log_softmax_native); },
};

}  // namespace janus
