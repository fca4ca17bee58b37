// Reductions: sums, means, products, extrema and their positions, tests, variances, norms. Also
// cumulative sums, sorting and top-k, which share gradient rules with them. An attribute `dim` that
// is None or empty means all dimensions.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "ops/expression.h"
#include "ops/index_space.h"
#include "ops/row_rules.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

bool keeps(const Attributes& attributes) { return flag_attribute(attributes, "keepdim"); }

std::vector<int64_t> dims_of(const Node& node, int64_t rank) {
  return reduced_dims(node.attributes, "dim", rank);
}

std::vector<Type> reduced(const Infer& infer, DType dtype) {
  const Shape& shape = tensor_type(infer, 0).shape;
  const auto dims = reduced_dims(infer.attributes, "dim", infer.type(0).rank());
  return {Type::tensor(dtype, reduced_shape(shape, dims, keeps(infer.attributes)))};
}

template <DType dtype>
std::vector<Type> reduced_to(const Infer& infer) {
  return reduced(infer, dtype);
}

/// The dtype of a product or sum: i64 for integers and booleans.
DType product_dtype(const Infer& infer) {
  const DType dtype = tensor_type(infer, 0).dtype;
  const DType result =
      dtype_attribute(infer.attributes).value_or(is_floating(dtype) ? dtype : DType::i64);
  if (is_complex(result)) infer.fail("complex result");
  return result;
}

/// A sum of booleans is no sum: eager asks whether any is true.
DType sum_dtype(const Infer& infer) {
  const DType result = product_dtype(infer);
  if (result == DType::b1) infer.fail("boolean result");
  return result;
}

/// Fails if a reduced dimension is known to be empty: extrema need an element.
void require_elements(const Infer& infer, std::span<const int64_t> dims) {
  for (const int64_t dim : dims)
    if (infer.type(0).shape[static_cast<size_t>(dim)].is(0)) infer.fail("an empty dimension");
}

/// A reduction's result in the operand's shape: reduced dimensions are restored, then broadcast.
Expression spread(const Node& node, const Expression& reduced, const Shape& shape) {
  if (keeps(node.attributes)) return expanded(reduced, shape);
  return expanded(restored(reduced, dims_of(node, static_cast<int64_t>(shape.size()))), shape);
}

/// The same without the broadcast.
Expression kept(const Node& node, const Expression& reduced, int64_t rank) {
  return keeps(node.attributes) ? reduced : restored(reduced, dims_of(node, rank));
}

/// The number of elements in each reduction.
Dim reduced_count(const Node& node, const Shape& shape) {
  Dim count = 1;
  for (const int64_t dim : dims_of(node, static_cast<int64_t>(shape.size())))
    count = count * shape[static_cast<size_t>(dim)];
  return count;
}

/// The gradient of a mean. It divides after the broadcast, as eager does, because a program may
/// write to the gradient. (`simplify` divides before it where that is unobservable.)
Expression mean_gradient(Vjp& g, const Expression& dy) {
  const auto x = in(g, 0);
  const auto count = number(g.builder(), reduced_count(g.node(), x.shape()));
  return cast(spread(g.node(), dy, x.shape()) / count, x.dtype());
}

// ---- Extrema ----------------------------------------------------------------------------------

std::vector<Type> infer_extremum(const Infer& infer) {
  const auto dims = reduced_dims(infer.attributes, "dim", tensor_type(infer, 0).rank());
  require_elements(infer, dims);
  return reduced(infer, infer.type(0).dtype);
}

/// The gradient is shared equally by all elements that equal the extremum. NaN equals no element,
/// so eager gives 0 / 0 for a row with NaN; zeros of other elements have the gradient's sign.
void shared_extremum_gradient(Vjp& g) {
  const auto x = in(g, 0);
  const auto y = kept(g.node(), out(g), x.rank()), dy = kept(g.node(), dout(g), x.rank());
  const auto hit = apply(op::eq, x, y);
  const auto dims = dims_of(g.node(), x.rank());
  if (dims.empty()) return g.add(0, dy);
  const auto count = sum_over(cast(hit, x.dtype()), dims, true);
  g.add(0, apply(op::where, hit, dy / count, dy * 0 / count));
}

/// The gradient of max() and min() of a whole tensor: NaNs share it if the result is NaN.
void whole_extremum_gradient(Vjp& g) {
  const auto x = in(g, 0), y = out(g), dy = dout(g);
  const auto nan = apply(op::logical_and, apply(op::isnan, x), apply(op::isnan, y));
  const auto hit = apply(op::logical_or, apply(op::eq, x, y), nan);
  g.add(0, apply(op::where, hit, dy / sum_all(cast(hit, x.dtype())), 0));
}

std::vector<Type> infer_whole(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  if (element_count(type.shape).is(0)) infer.fail("an empty tensor");
  return {Type::tensor(type.dtype, {})};
}

std::vector<Type> infer_extremum_with_index(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  const int64_t dims[] = {wrap_dim(infer, integer_attribute(infer.attributes, "dim"), type.rank())};
  if (type.shape.empty()) return {type, Type::tensor(DType::i64, {})};
  require_elements(infer, dims);
  const Shape shape = reduced_shape(type.shape, dims, keeps(infer.attributes));
  return {Type::tensor(type.dtype, shape), Type::tensor(DType::i64, shape)};
}

/// The gradient of sorted elements: goes to the places in the indices (result 1).
void ordered_gradient(Vjp& g) {
  if (g.dout(0) == nullptr) return;
  const auto x = in(g, 0), dy = dout(g), index = out(g, 1);
  if (x.rank() == 0) return g.add(0, dy);
  const int64_t dim = wrap_dim(integer_attribute(g.node().attributes, "dim"), x.rank());
  g.add(0, apply(op::scatter, {{"dim", dim}}, zeros_of(x), index, dy));
}

void extremum_with_index_gradient(Vjp& g) {
  if (g.dout(0) == nullptr) return;
  const auto x = in(g, 0), dy = dout(g), index = out(g, 1);
  if (x.rank() == 0) return g.add(0, dy);
  const int64_t dim = wrap_dim(integer_attribute(g.node().attributes, "dim"), x.rank());
  const auto whole = [&](const Expression& y) {
    return keeps(g.node().attributes) ? y : unsqueezed(y, dim);
  };
  g.add(0, put_at(whole(dy), whole(index), x.shape(), dim));
}

/// The position of an element within its reduction, in row-major order.
Expression place_among(const Expression& x, std::span<const int64_t> dims) {
  std::optional<Expression> place;
  for (const int64_t dim : dims) {
    const auto along = apply(op::position, {{"dim", dim}}, x);
    const Dim& size = x.shape()[static_cast<size_t>(dim)];
    place = place ? *place * number(*x.builder(), size) + along : along;
  }
  return *place;
}

/// The extremum and the position of the first element that equals it. If there is a NaN, NaN is the
/// extremum.
struct Extremum {
  Expression value, place;
};

Extremum find_extremum(const Decompose& d, const OpDef& extremum, std::span<const int64_t> dims) {
  const auto x = in(d, 0);
  const Shape along(dims.begin(), dims.end());
  const auto over = [&](const OpDef& op, const Expression& y, bool keep) {
    return apply(op, {{"dim", along}, {"keepdim", keep}}, y);
  };
  auto hit = apply(op::eq, x, over(extremum, x, true));
  if (is_floating(x.dtype())) hit = apply(op::logical_or, hit, apply(op::ne, x, x));
  const auto beyond = std::numeric_limits<int64_t>::max();
  const auto place = apply(op::where, hit, place_among(x, dims), beyond);
  const bool keep = keeps(d.node.attributes);
  return {over(extremum, x, keep), over(op::amin, place, keep)};
}

// Decompositions, for fusion.

template <const OpDef& extremum>
std::vector<Value*> extremum_with_index_in_parts(const Decompose& d) {
  const auto found = find_extremum(d, extremum, reduction_of(d.node)->dims);
  return {found.value, found.place};
}

template <const OpDef& extremum>
std::vector<Value*> position_in_parts(const Decompose& d) {
  return {find_extremum(d, extremum, reduction_of(d.node)->dims).place};
}

std::vector<Type> infer_position(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  if (infer.attributes.is_none("dim")) {
    if (element_count(type.shape).is(0)) infer.fail("an empty tensor");
    const Shape shape = keeps(infer.attributes) ? Shape(type.shape.size(), Dim(1)) : Shape{};
    return {Type::tensor(DType::i64, shape)};
  }
  const int64_t dim = wrap_dim(infer, integer_attribute(infer.attributes, "dim"), type.rank());
  if (type.shape.empty()) return {Type::tensor(DType::i64, {})};
  const int64_t dims[] = {dim};
  require_elements(infer, dims);
  return {Type::tensor(DType::i64, reduced_shape(type.shape, dims, keeps(infer.attributes)))};
}

std::vector<Type> infer_test(const Infer& infer) {
  // In eager, tests of u8 give u8.
  if (tensor_type(infer, 0).dtype == DType::u8) infer.fail("operand of type u8");
  return reduced(infer, DType::b1);
}

// ---- Products ---------------------------------------------------------------------------------

/// The product along `dim`, whose size is known, and its gradient, by a tree of multiplications: it
/// is exact for zeros and differentiable to any order.
class ProductTree {
 public:
  ProductTree(const Expression& x, int64_t dim) : dim_(dim) {
    levels_.push_back(x);
    while (size(levels_.back()) > 1) levels_.push_back(halved(levels_.back()));
  }

  /// `dy` has size 1 along the dimension.
  Expression gradient(const Expression& dy) const {
    Expression gradient = dy;
    for (size_t i = levels_.size() - 1; i-- > 0;) gradient = step_down(levels_[i], gradient);
    return gradient;
  }

 private:
  int64_t size(const Expression& x) const { return x.shape()[static_cast<size_t>(dim_)].value(); }

  Expression part(const Expression& x, int64_t start, int64_t stop) const {
    return sliced(x, dim_, start, stop);
  }

  Expression halved(const Expression& x) const {
    const int64_t half = size(x) / 2;
    const auto product = part(x, 0, half) * part(x, half, 2 * half);
    return size(x) % 2 == 0 ? product : joined({product, part(x, 2 * half, size(x))});
  }

  Expression step_down(const Expression& x, const Expression& gradient) const {
    const int64_t half = size(x) / 2;
    const auto dy = part(gradient, 0, half);
    std::vector<Expression> parts{dy * part(x, half, 2 * half), dy * part(x, 0, half)};
    if (size(x) % 2 != 0) parts.push_back(part(gradient, half, half + 1));
    return joined(parts);
  }

  Expression joined(const std::vector<Expression>& parts) const {
    Node* node = apply_node(op::cat, parts, {{"dim", dim_}});
    return Expression(*parts.front().builder(), node->output());
  }

  int64_t dim_;
  std::vector<Expression> levels_;
};

/// The gradient of a product. Without zeros, eager divides the product by each element, which is
/// visible with NaN, infinities and overflow; with zeros it multiplies the other elements. `y` and
/// `dy` have size 1 along the dimension.
Expression product_gradient(const Expression& x, const Expression& y, const Expression& dy,
                            int64_t dim) {
  const Dim& size = x.shape()[static_cast<size_t>(dim)];
  if (!size.is_constant()) throw TypeError("prod: no gradient along a dimension that varies");
  if (size.is(0)) return zeros_of(x);
  const auto zeros = sum_all(cast(apply(op::eq, x, 0), DType::i64));
  const auto some = apply(op::gt, zeros, 0);
  const auto quotients = dy * (y / apply(op::where, some, 1, x));
  const auto gradient = apply(op::where, some, ProductTree(x, dim).gradient(dy), quotients);
  if (x.rank() > 1) return gradient;
  // If a vector has several zeros, eager gives zeros, whatever the other elements; yet this has a
  // gradient of its own.
  const auto is_nan = apply(op::ne, gradient, gradient);
  const auto hides = apply(op::logical_and, is_nan, apply(op::gt, zeros, 1));
  return apply(op::where, hides, 0, gradient);
}

// ---- Variances --------------------------------------------------------------------------------

/// The divisor of the sum of squares: the count minus the correction (1 by default).
Expression freedom(const Node& node, const Expression& correction, const Shape& shape) {
  Builder& builder = *correction.builder();
  const Expression count = number(builder, reduced_count(node, shape));
  return correction.is_none() ? count - 1 : count - correction;
}

Expression centred(const Node& node, const Expression& x) {
  const auto dims = dims_of(node, x.rank());
  return dims.empty() ? x - x : x - mean_over(x, dims, true);
}

std::vector<Type> infer_variance(const Infer& infer) {
  require_number(infer, 1);
  return reduced(infer, floating_tensor(infer, 0).dtype);
}

Expression variance_gradient(const Vjp& g, const Expression& dy) {
  const auto x = in(g, 0);
  const auto scale = kept(g.node(), dy, x.rank()) * 2 / freedom(g.node(), in(g, 1), x.shape());
  return scale * centred(g.node(), x);
}

Expression deviation_gradient(const Vjp& g, const Expression& dy, const Expression& y) {
  const auto flat = apply(op::eq, y, 0);
  return variance_gradient(g, apply(op::where, flat, 0, dy / (y * 2)));
}

/// The correction that the flag `unbiased` stands for.
Expression correction_of(const Decompose& d) {
  const bool unbiased = flag_attribute(d.node.attributes, "unbiased");
  return Expression(d.builder, d.builder.constant(static_cast<int64_t>(unbiased ? 1 : 0)));
}

std::vector<Value*> values(const std::vector<Expression>& expressions) {
  return {expressions.begin(), expressions.end()};
}

std::vector<Value*> decompose_unbiased(const Decompose& d, const OpDef& native) {
  return {apply(
      native,
      {{"dim", *d.node.attributes.find("dim")}, {"keepdim", *d.node.attributes.find("keepdim")}},
      in(d, 0), correction_of(d))};
}

// ---- Norms ------------------------------------------------------------------------------------

DType norm_dtype(const Infer& infer) {
  const DType dtype = floating_tensor(infer, 0).dtype;
  if (dtype_attribute(infer.attributes).value_or(dtype) != dtype)
    infer.fail("a norm in another dtype");
  return dtype;
}

std::vector<Type> infer_norm(const Infer& infer) {
  const DType dtype = norm_dtype(infer);
  if (!constant_number(infer.inputs[1])) infer.fail("the order of a norm must be known");
  return reduced(infer, dtype);
}

/// The gradient of the norm |x|_p for a known order p.
Expression norm_gradient(const Node& node, const Expression& x, const Expression& reduced_norm,
                         const Expression& reduced_dy, double order) {
  const auto norm = kept(node, reduced_norm, x.rank()), dy = kept(node, reduced_dy, x.rank());
  const auto at_zero = apply(op::eq, norm, 0);
  if (order == 0) throw graph::TypeError("the gradient of a count is None in eager, not zeros");
  if (order == 1) return dy * apply(op::sign, x);
  if (order == 2) return apply(op::where, at_zero, 0, x * (dy / norm));
  const auto size = apply(op::abs, x);
  if (order == std::numeric_limits<double>::infinity() ||
      order == -std::numeric_limits<double>::infinity()) {
    const auto hit = apply(op::eq, size, norm);
    const auto dims = dims_of(node, x.rank());
    const auto count =
        dims.empty() ? cast(hit, x.dtype()) : sum_over(cast(hit, x.dtype()), dims, true);
    return apply(op::where, hit, apply(op::sign, x) * (dy / count), 0);
  }
  const auto power = apply(op::pow_scalar, size, order - 1);
  const auto scale = dy / apply(op::pow_scalar, norm, order - 1);
  const auto slope = apply(op::sign, x) * power * scale;
  return apply(op::where, apply(op::logical_or, at_zero, apply(op::eq, x, 0)), 0, slope);
}

/// torch.norm as vector_norm: its order is a number, or None or "fro" for 2.
std::vector<Value*> decompose_norm(const Decompose& d) {
  const auto order = in(d, 1);
  Attributes attributes{{"dim", *d.node.attributes.find("dim")},
                        {"keepdim", *d.node.attributes.find("keepdim")}};
  if (order.is_none()) return {apply(op::vector_norm, std::move(attributes), in(d, 0), 2)};
  return {apply(op::vector_norm, std::move(attributes), in(d, 0), order)};
}

/// The decomposition of logsumexp. Each step of eager's rounds half precision; x is float32 then.
std::vector<Value*> logsumexp_in_parts(const Decompose& d) {
  const auto x = in(d, 0);
  const DType stored = d.node.inputs[0]->type.dtype;
  const auto over = [&](const OpDef& op, const Expression& y, bool keep) {
    return apply(op, {{"dim", *d.node.attributes.find("dim")}, {"keepdim", keep}}, y);
  };
  const auto finite = [](const Expression& largest) {
    const auto is_infinite =
        apply(op::eq, apply(op::abs, largest), std::numeric_limits<double>::infinity());
    return apply(op::where, is_infinite, 0.0, largest);
  };
  const bool keep = keeps(d.node.attributes);
  const auto shifted = rounded(x - finite(over(op::amax, x, true)), stored);
  const auto total = over(op::sum, rounded(apply(op::exp, shifted), stored), keep);
  const auto logarithm = rounded(apply(op::log, rounded(total, stored)), stored);
  return {logarithm + finite(over(op::amax, x, keep))};
}

std::vector<Type> same_shape_sorted(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  wrap_dim(infer, integer_attribute(infer.attributes, "dim"), type.rank());
  return {type, Type::tensor(DType::i64, type.shape)};
}

}  // namespace

constinit const OpDef op::sum{
    .name = "sum",
    .doc = "The sum over dimensions; of integers and booleans, an i64.",
    .schema =
        "(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    .aten = "sum.dim_IntList",
    .python = "sum Tensor.sum",
    .traits = Trait::pure | Trait::linear,
    .layout = Layout::differs,
    .raises = Raises::never_for_floats,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .combines = Combines::sum,
    .reduces = Reduces::named,
    .rounds = Rounds::at_the_end,
    .infer = [](const Infer& infer) { return reduced(infer, sum_dtype(infer)); },
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0);
          g.add(0, spread(g.node(), cast(dout(g), x.dtype()), x.shape()));
        },
    .rows = for_rows::reduced,
};

constinit const OpDef op::mean{
    .name = "mean",
    .doc = "The mean over dimensions.",
    .schema =
        "(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    .aten = "mean.dim",
    .python = "mean Tensor.mean",
    .traits = Trait::pure | Trait::linear,
    .layout = Layout::differs,
    .raises = Raises::never_for_floats,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .combines = Combines::mean,
    .reduces = Reduces::named,
    .rounds = Rounds::at_the_end,
    .infer =
        [](const Infer& infer) {
          const DType dtype =
              dtype_attribute(infer.attributes).value_or(tensor_type(infer, 0).dtype);
          if (!is_floating(dtype)) infer.fail(janus::cat("the mean of ", infer.type(0)));
          return reduced(infer, dtype);
        },
    .vjp = [](Vjp& g) { g.add(0, mean_gradient(g, dout(g))); },
    .rows = for_rows::reduced,
};

constinit const OpDef op::prod{
    .name = "prod",
    .doc = "The product of all elements.",
    .schema = "(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    .aten = "prod",
    .python = "prod Tensor.prod",
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::full,
    .combines = Combines::product,
    .reduces = Reduces::all,
    .rounds = Rounds::within,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      return {Type::tensor(product_dtype(infer), {})};
    },
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0);
          const auto flat = cast(reshaped(x, {element_count(x.shape())}), out(g).dtype());
          const Shape one{Dim(1)};
          const auto y = reshaped(out(g), one), dy = reshaped(dout(g), one);
          const auto gradient = product_gradient(flat, y, dy, 0);
          g.add(0, cast(reshaped(gradient, x.shape()), x.dtype()));
        },
};

constinit const OpDef op::prod_dim{
    .name = "prod_dim",
    .doc = "The product along a dimension.",
    .schema = "(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    .aten = "prod.dim_int",
    .python = "prod Tensor.prod",
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::full,
    .combines = Combines::product,
    .reduces = Reduces::one,
    .rounds = Rounds::within,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const Type& type = tensor_type(infer, 0);
      const int64_t dims[] = {
          wrap_dim(infer, integer_attribute(infer.attributes, "dim"), type.rank())};
      const DType dtype = product_dtype(infer);
      if (type.shape.empty()) return {Type::tensor(dtype, {})};
      return {Type::tensor(dtype, reduced_shape(type.shape, dims, keeps(infer.attributes)))};
    },
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0);
          if (x.rank() == 0) return g.add(0, cast(dout(g), x.dtype()));
          const int64_t dim = wrap_dim(integer_attribute(g.node().attributes, "dim"), x.rank());
          const auto whole = [&](const Expression& y) {
            return keeps(g.node().attributes) ? y : unsqueezed(y, dim);
          };
          const auto y = whole(out(g)), dy = whole(dout(g));
          g.add(0, cast(product_gradient(cast(x, dy.dtype()), y, dy, dim), x.dtype()));
        },
};

constinit const OpDef op::amax{
    .name = "amax",
    .doc = "The maximum over dimensions.",
    .schema = "(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
    .aten = "amax",
    .python = "amax Tensor.amax",
    .layout = Layout::differs,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .combines = Combines::maximum,
    .reduces = Reduces::named,
    .rounds = Rounds::at_the_end,
    .infer = infer_extremum,
    .vjp = shared_extremum_gradient,
    .rows = for_rows::reduced,
};

constinit const OpDef op::amin{
    .name = "amin",
    .doc = "The minimum over dimensions.",
    .schema = "(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
    .aten = "amin",
    .python = "amin Tensor.amin",
    .layout = Layout::differs,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .combines = Combines::minimum,
    .reduces = Reduces::named,
    .rounds = Rounds::at_the_end,
    .infer = infer_extremum,
    .vjp = shared_extremum_gradient,
    .rows = for_rows::reduced,
};

constinit const OpDef op::max{
    .name = "max",
    .doc = "The maximum of all elements.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "max",
    .python = "max Tensor.max",
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .combines = Combines::maximum,
    .reduces = Reduces::all,
    .rounds = Rounds::at_the_end,
    .infer = infer_whole,
    .vjp = whole_extremum_gradient,
};

constinit const OpDef op::min{
    .name = "min",
    .doc = "The minimum of all elements.",
    .schema = "(Tensor self) -> Tensor",
    .aten = "min",
    .python = "min Tensor.min",
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .combines = Combines::minimum,
    .reduces = Reduces::all,
    .rounds = Rounds::at_the_end,
    .infer = infer_whole,
    .vjp = whole_extremum_gradient,
};

constinit const OpDef op::max_dim{
    .name = "max_dim",
    .doc = "The maximum along a dimension and its position.",
    .schema = "(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .aten = "max.dim",
    .python = "max Tensor.max",
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .reduces = Reduces::to_position,
    .rounds = Rounds::at_the_end,
    .cost = Cost::slow_alone,
    .infer = infer_extremum_with_index,
    .vjp = extremum_with_index_gradient,
    .decompose = extremum_with_index_in_parts<op::amax>,
};

constinit const OpDef op::min_dim{
    .name = "min_dim",
    .doc = "The minimum along a dimension and its position.",
    .schema = "(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .aten = "min.dim",
    .python = "min Tensor.min",
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .reduces = Reduces::to_position,
    .rounds = Rounds::at_the_end,
    .cost = Cost::slow_alone,
    .infer = infer_extremum_with_index,
    .vjp = extremum_with_index_gradient,
    .decompose = extremum_with_index_in_parts<op::amin>,
};

constinit const OpDef op::argmax{
    .name = "argmax",
    .doc = "The position of the maximum, along a dimension or in the flattened tensor.",
    .schema = "(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    .aten = "argmax",
    .python = "argmax Tensor.argmax",
    .traits = Trait::pure | Trait::no_gradient,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .reduces = Reduces::to_position,
    .rounds = Rounds::at_the_end,
    // Kernels go over a row twice in vectors: three to ten times as fast.
    .cost = Cost::slow_alone,
    .infer = infer_position,
    .decompose = position_in_parts<op::amax>,
};

constinit const OpDef op::argmin{
    .name = "argmin",
    .doc = "The position of the minimum, along a dimension or in the flattened tensor.",
    .schema = "(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    .aten = "argmin",
    .python = "argmin Tensor.argmin",
    .traits = Trait::pure | Trait::no_gradient,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .reduces = Reduces::to_position,
    .rounds = Rounds::at_the_end,
    .cost = Cost::slow_alone,
    .infer = infer_position,
    .decompose = position_in_parts<op::amin>,
};

constinit const OpDef op::any{
    .name = "any",
    .doc = "Whether an element is not zero.",
    .schema = "(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    .aten = "any.dims",
    .python = "any Tensor.any",
    .traits = Trait::pure | Trait::no_gradient,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .combines = Combines::any,
    .reduces = Reduces::named,
    .rounds = Rounds::at_the_end,
    .infer = infer_test,
};

constinit const OpDef op::all{
    .name = "all",
    .doc = "Whether no element is zero.",
    .schema = "(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    .aten = "all.dims",
    .python = "all Tensor.all",
    .traits = Trait::pure | Trait::no_gradient,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .combines = Combines::all,
    .reduces = Reduces::named,
    .rounds = Rounds::at_the_end,
    .infer = infer_test,
};

// Overloads with a flag come before those with a correction: a call that fits both means the flag.

constinit const OpDef op::var_all{
    .name = "var_all",
    .doc = "var of all elements with a flag for the correction.",
    .schema = "(Tensor self, bool unbiased=True) -> Tensor",
    .python = "var Tensor.var",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      return {Type::tensor(floating_tensor(infer, 0).dtype, {})};
    },
    .decompose = [](const Decompose& d) -> std::vector<Value*> {
      return {apply(op::var, in(d, 0), correction_of(d))};
    },
};

constinit const OpDef op::std_all{
    .name = "std_all",
    .doc = "std of all elements with a flag for the correction.",
    .schema = "(Tensor self, bool unbiased=True) -> Tensor",
    .python = "std Tensor.std",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::result,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      return {Type::tensor(floating_tensor(infer, 0).dtype, {})};
    },
    .decompose = [](const Decompose& d) -> std::vector<Value*> {
      return {apply(op::std, in(d, 0), correction_of(d))};
    },
};

constinit const OpDef op::var_unbiased{
    .name = "var_unbiased",
    .doc = "var with a flag for the correction.",
    .schema = "(Tensor self, int[1]? dim=None, bool unbiased=True, bool keepdim=False) -> Tensor",
    .python = "var Tensor.var",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = [](const Infer& infer) { return reduced(infer, floating_tensor(infer, 0).dtype); },
    .decompose = [](const Decompose& d) { return decompose_unbiased(d, op::var); },
};

constinit const OpDef op::std_unbiased{
    .name = "std_unbiased",
    .doc = "std with a flag for the correction.",
    .schema = "(Tensor self, int[1]? dim=None, bool unbiased=True, bool keepdim=False) -> Tensor",
    .python = "std Tensor.std",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::result,
    .infer = [](const Infer& infer) { return reduced(infer, floating_tensor(infer, 0).dtype); },
    .decompose = [](const Decompose& d) { return decompose_unbiased(d, op::std); },
};

constinit const OpDef op::var{
    .name = "var",
    .doc = "The variance over dimensions, with Bessel's correction unless another is given.",
    .schema =
        "(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
    .aten = "var.correction",
    .python = "var Tensor.var",
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_variance,
    .vjp = [](Vjp& g) { g.add(0, variance_gradient(g, dout(g))); },
};

constinit const OpDef op::std{
    .name = "std",
    .doc = "The square root of var.",
    .schema =
        "(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
    .aten = "std.correction",
    .python = "std Tensor.std",
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_variance,
    .vjp = [](Vjp& g) { g.add(0, deviation_gradient(g, dout(g), out(g))); },
};

constinit const OpDef op::var_mean_all{
    .name = "var_mean_all",
    .doc = "Variance and mean of all elements with a flag for the correction.",
    .schema = "(Tensor self, bool unbiased=True) -> (Tensor, Tensor)",
    .python = "var_mean",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const Type type = Type::tensor(floating_tensor(infer, 0).dtype, {});
      return {type, type};
    },
    .decompose = [](const Decompose& d) -> std::vector<Value*> {
      return values(apply_all(op::var_mean, {}, in(d, 0), correction_of(d)));
    },
};

constinit const OpDef op::var_mean_unbiased{
    .name = "var_mean_unbiased",
    .doc = "var_mean with a flag for the correction.",
    .schema =
        "(Tensor self, int[1]? dim=None, bool unbiased=True, bool keepdim=False) -> "
        "(Tensor, Tensor)",
    .python = "var_mean",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const Type type = reduced(infer, floating_tensor(infer, 0).dtype)[0];
      return {type, type};
    },
    .decompose = [](const Decompose& d) -> std::vector<Value*> {
      const Attributes attributes{{"dim", *d.node.attributes.find("dim")},
                                  {"keepdim", *d.node.attributes.find("keepdim")}};
      return values(apply_all(op::var_mean, attributes, in(d, 0), correction_of(d)));
    },
};

constinit const OpDef op::var_mean{
    .name = "var_mean",
    .doc = "Variance and mean over dimensions; the mean of infinities may be NaN, unlike `mean`'s.",
    .schema =
        "(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
        "(Tensor, Tensor)",
    .aten = "var_mean.correction",
    .python = "var_mean",
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const Type type = infer_variance(infer)[0];
      return {type, type};
    },
    .vjp =
        [](Vjp& g) {
          if (g.dout(0) != nullptr) g.add(0, variance_gradient(g, dout(g, 0)));
          if (g.dout(1) != nullptr) g.add(0, mean_gradient(g, dout(g, 1)));
        },
};

constinit const OpDef op::vector_norm{
    .name = "vector_norm",
    .doc = "The p-norm of the elements over dimensions.",
    .schema =
        "(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
        "ScalarType? dtype=None) -> Tensor",
    .aten = "linalg_vector_norm",
    .python = "linalg.vector_norm",
    .layout = Layout::differs,
    .raises = Raises::never_for_floats,
    .saves = Saves::result,
    .infer = infer_norm,
    .vjp =
        [](Vjp& g) {
          const double order = *constant_number(g.in(1));
          g.add(0, norm_gradient(g.node(), in(g, 0), out(g), dout(g), order));
        },
};

constinit const OpDef op::norm{
    .name = "norm",
    .doc = "The p-norm with torch.norm's parameters; None means 2.",
    .schema = "(Tensor self, Scalar? p=2, int[1]? dim=None, bool keepdim=False) -> Tensor",
    .python = "norm Tensor.norm",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::result,
    .infer =
        [](const Infer& infer) {
          if (!infer.type(1).is_none() && !constant_number(infer.inputs[1]))
            infer.fail("the order of a norm must be known");
          return reduced(infer, floating_tensor(infer, 0).dtype);
        },
    .decompose = decompose_norm,
};

constinit const OpDef op::logsumexp{
    .name = "logsumexp",
    .doc = "The logarithm of the sum of exponentials over dimensions.",
    .schema = "(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    .aten = "logsumexp",
    .python = "logsumexp Tensor.logsumexp special.logsumexp",
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .reduces = Reduces::named,
    .rounds = Rounds::at_the_end,
    // ATen makes it of six operators.
    .cost = Cost::slow_alone,
    .infer =
        [](const Infer& infer) {
          if (list_attribute(infer.attributes, "dim").empty()) infer.fail("no dimension");
          return reduced(infer, floating_tensor(infer, 0).dtype);
        },
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0);
          const auto y = kept(g.node(), out(g), x.rank());
          g.add(0, kept(g.node(), dout(g), x.rank()) * apply(op::exp, x - y));
        },
    .decompose = logsumexp_in_parts,
};

constinit const OpDef op::cumsum{
    .name = "cumsum",
    .doc = "The running sum along a dimension.",
    .schema = "(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    .aten = "cumsum",
    .python = "cumsum Tensor.cumsum",
    .traits = Trait::pure | Trait::linear,
    .layout = Layout::differs,
    .raises = Raises::never_for_floats,
    .saves = Saves::nothing,
    .has_plain_gradient = true,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const Type& type = tensor_type(infer, 0);
      wrap_dim(infer, integer_attribute(infer.attributes, "dim"), type.rank());
      return {Type::tensor(sum_dtype(infer), type.shape)};
    },
    .vjp =
        [](Vjp& g) {
          const auto x = in(g, 0);
          const auto dy = cast(dout(g), x.dtype());
          if (x.rank() == 0) return g.add(0, dy);
          const int64_t dim = wrap_dim(integer_attribute(g.node().attributes, "dim"), x.rank());
          const auto turned = [&](const Expression& y) {
            return apply(op::flip, {{"dims", Shape{Dim(dim)}}}, y);
          };
          g.add(0, turned(apply(op::cumsum, {{"dim", dim}}, turned(dy))));
        },
};

constinit const OpDef op::sort{
    .name = "sort",
    .doc = "The elements along a dimension in order, and where they came from.",
    .schema = "(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    .aten = "sort",
    .python = "sort Tensor.sort",
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = same_shape_sorted,
    .vjp = ordered_gradient,
};

constinit const OpDef op::argsort{
    .name = "argsort",
    .doc = "The positions that sort a tensor along a dimension.",
    .schema = "(Tensor self, int dim=-1, bool descending=False) -> Tensor",
    .aten = "argsort",
    .python = "argsort Tensor.argsort",
    .traits = Trait::pure | Trait::no_gradient,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .infer = [](const Infer& infer) -> std::vector<Type> { return {same_shape_sorted(infer)[1]}; },
};

constinit const OpDef op::topk{
    .name = "topk",
    .doc = "The k largest (or smallest) elements along a dimension and their positions.",
    .schema =
        "(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> "
        "(Tensor values, Tensor indices)",
    .aten = "topk",
    .python = "topk Tensor.topk",
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const Type& type = tensor_type(infer, 0);
      const int64_t dim = wrap_dim(infer, integer_attribute(infer.attributes, "dim"), type.rank());
      const int64_t k = integer_attribute(infer.attributes, "k");
      if (type.shape.empty()) infer.fail("a tensor without dimensions");
      Shape shape = type.shape;
      const auto size = shape[static_cast<size_t>(dim)].lower_bound();
      if (k < 0 || !size || k > *size) infer.fail(janus::cat("k is ", k, " for ", type));
      shape[static_cast<size_t>(dim)] = k;
      return {Type::tensor(type.dtype, shape), Type::tensor(DType::i64, shape)};
    },
    .vjp = ordered_gradient,
};

}  // namespace janus
