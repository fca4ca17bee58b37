// Normalisation over batches, layers and groups, and embedding look-up.
//
// In eager, training a batch norm changes its running statistics. Here the new statistics are
// results 1 and 2 of `batch_norm` (none without statistics), which the front end writes back. The
// gradients of the backward operators use the normalised operand x^ = (x - m) s, where m is the
// mean and s one over the deviation of each group of N elements:
//   backward:  dx = s (h - mean(h) - x^ mean(h x^)),  h = dy w
//   its vjp for a cotangent u of dx: see `normalised_backward_gradients`.
#include <algorithm>
#include <array>
#include <numeric>

#include "base/policy.h"
#include "graph/cost.h"
#include "ops/expression.h"
#include "ops/index_space.h"
#include "ops/row_rules.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

/// How a normalisation groups its elements.
struct Grouping {
  std::vector<int64_t> reduced;  ///< dimensions that a group spans
  std::vector<int64_t> shared;   ///< dimensions over which the affine parameters are shared
};

/// Groups of batch norm: one for each channel, dimension 1.
Grouping by_channel(int64_t rank) {
  Grouping grouping;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (dim != 1) grouping.reduced.push_back(dim);
  grouping.shared = grouping.reduced;
  return grouping;
}

/// Groups of layer norm: the last `inner` dimensions.
Grouping by_sample(int64_t rank, int64_t inner) {
  Grouping grouping;
  for (int64_t dim = 0; dim < rank; ++dim)
    (dim < rank - inner ? grouping.shared : grouping.reduced).push_back(dim);
  return grouping;
}

/// The parts of one normalisation. All shapes broadcast with x.
struct Normalised {
  Expression x, mean, scale;  ///< scale: one over the deviation
  Grouping grouping;

  Expression hat() const { return (x - mean) * scale; }
  Expression average(const Expression& y) const { return mean_over(y, grouping.reduced, true); }
  /// y without its mean and without its component along x^.
  Expression projected(const Expression& y) const {
    return y - average(y) - hat() * average(y * hat());
  }
  Dim count() const {
    Dim count = 1;
    for (const int64_t dim : grouping.reduced) count = count * x.shape()[static_cast<size_t>(dim)];
    return count;
  }
};

Expression sum_shared(const Expression& y, const Grouping& grouping) {
  return grouping.shared.empty() ? y : sum_over(y, grouping.shared, true);
}

struct BackwardGradients {
  Expression dy, x, weight;
};

/// The gradients of dy, x and w from the cotangents u, a, c of dx, dw, db, as far as given. With
/// h = dy w, P the projection above and T = sum(u P(h)) over a group:
///   for h:  s P(u);  dy adds a x^ + c
///   for x:  through x^: s P(G) with G = -s (h mean(u x^) + u mean(h x^)) + a dy;
///           through s: -(s s / N) x^ T
BackwardGradients normalised_backward_gradients(const Normalised& n, const Expression& dy,
                                                const Expression& weight, const Vjp& g) {
  Builder& builder = *n.x.builder();
  const auto hat = n.hat();
  const bool scaled = !weight.is_none();
  const auto h = scaled ? dy * weight : dy;
  Expression for_dy = zeros_of(dy), through_hat = zeros_of(n.x), through_scale = zeros_of(n.x);
  Expression for_weight = zeros_of(dy);
  if (g.dout(0) != nullptr) {
    const Expression u(builder, g.dout(0));
    const auto for_h = n.scale * n.projected(u);
    for_dy = for_dy + (scaled ? for_h * weight : for_h);
    for_weight = for_h * dy;
    through_hat = through_hat - n.scale * (h * n.average(u * hat) + u * n.average(h * hat));
    const auto total = sum_over(u * n.projected(h), n.grouping.reduced, true);
    through_scale = n.scale * n.scale * hat * total / number(builder, n.count());
  }
  const auto shaped = [&](const Expression& y) { return scaled ? reshaped(y, weight.shape()) : y; };
  if (g.dout(1) != nullptr) {
    const auto a = shaped(Expression(builder, g.dout(1)));
    for_dy = for_dy + a * hat;
    through_hat = through_hat + a * dy;
  }
  if (g.dout(2) != nullptr) for_dy = for_dy + shaped(Expression(builder, g.dout(2)));
  const auto for_x = n.scale * n.projected(through_hat) - through_scale;
  return {.dy = for_dy, .x = for_x, .weight = sum_shared(for_weight, n.grouping)};
}

std::vector<Type> masked_types(const Infer& infer, const Type& input, const Type& weight) {
  const auto mask = mask_attribute(infer.attributes, "output_mask");
  if (mask.size() != 3) infer.fail("the mask must have three flags");
  return {mask[0] ? input : Type::none(), mask[1] ? weight : Type::none(),
          mask[2] ? weight : Type::none()};
}

// ---- Batches ----------------------------------------------------------------------------------

/// Fails unless the operands `inputs` are none or vectors with one element for each channel.
void require_vectors(const Infer& infer, std::initializer_list<size_t> inputs) {
  const Type& input = infer.type(0);
  for (const size_t i : inputs) {
    if (infer.type(i).is_none()) continue;
    const Type& vector = tensor_of_rank(infer, i, 1);
    if (vector.dtype != input.dtype) infer.fail(cat("dtypes differ: ", input, ", ", vector));
    require_equal(infer, vector.shape[0], input.shape[1], "channels");
  }
}

const Type& batch_input(const Infer& infer) {
  const Type& input = floating_tensor(infer, 0);
  if (input.rank() < 2) infer.fail(cat("input ", input));
  return input;
}

Type channel_type(const Type& input) { return Type::tensor(input.dtype, {input.shape[1]}); }

std::vector<Type> infer_batch_norm_train(const Infer& infer) {
  const Type& input = batch_input(infer);
  require_vectors(infer, {1, 2, 3, 4});
  if (!flag_attribute(infer.attributes, "training")) infer.fail("only for training");
  const Type channel = channel_type(input);
  return {input, channel, channel, channel, channel};
}

std::vector<Type> infer_batch_norm_no_stats(const Infer& infer) {
  const Type& input = batch_input(infer);
  require_vectors(infer, {1, 2});
  if (!flag_attribute(infer.attributes, "training")) infer.fail("only for training");
  const Type channel = channel_type(input);
  return {input, channel, channel};
}

Normalised by_channel(const Expression& x, const Expression& mean, const Expression& scale) {
  return {.x = x,
          .mean = along(mean, 1, x.rank()),
          .scale = along(scale, 1, x.rank()),
          .grouping = by_channel(x.rank())};
}

/// Adds the gradients of x through the saved mean and scale (results 1 and 2).
void saved_statistics_gradient(Vjp& g, const Normalised& n, const Expression* dmean,
                               const Expression* dscale) {
  const auto count = number(g.builder(), n.count());
  if (dmean != nullptr) g.add(0, expanded(*dmean / count, n.x.shape()));
  if (dscale != nullptr) g.add(0, -(*dscale * n.scale * n.scale / count) * n.hat());
}

template <bool has_statistics>
void batch_norm_gradient(Vjp& g, Value* eps) {
  const auto x = in(g, 0);
  const auto n = by_channel(x, out(g, 1), out(g, 2));
  if (g.dout(0) != nullptr) {
    const std::vector<bool> mask{g.needs(0), g.needs(1), g.needs(2)};
    const Expression none(g.builder(), g.builder().none());
    const auto results =
        apply_all(op::batch_norm_backward, {{"train", true}, {"output_mask", mask}}, dout(g), x,
                  in(g, 1), has_statistics ? in(g, 3) : none, has_statistics ? in(g, 4) : none,
                  out(g, 1), out(g, 2), Expression(g.builder(), eps));
    for (size_t i = 0; i < 3; ++i)
      if (mask[i]) g.add(i, results[i]);
  }
  if (!g.needs(0)) return;
  const auto spread = [&](size_t result) { return along(dout(g, result), 1, x.rank()); };
  if (g.dout(1) != nullptr) {
    const auto dmean = spread(1);
    saved_statistics_gradient(g, n, &dmean, nullptr);
  }
  if (g.dout(2) != nullptr) {
    const auto dscale = spread(2);
    saved_statistics_gradient(g, n, nullptr, &dscale);
  }
}

std::vector<Type> infer_batch_norm_backward(const Infer& infer) {
  const Type& input = floating_tensor(infer, 1);
  if (!(floating_tensor(infer, 0) == input)) infer.fail("gradient and input differ in type");
  if (!flag_attribute(infer.attributes, "train")) infer.fail("only for training");
  return masked_types(infer, input, channel_type(input));
}

void batch_norm_backward_gradient(Vjp& g) {
  const auto dy = in(g, 0), x = in(g, 1), weight = in(g, 2);
  const auto n = by_channel(x, in(g, 5), in(g, 6));
  const auto shaped = weight.is_none() ? weight : along(weight, 1, x.rank());
  // Cotangents of dw and db come as vectors.
  struct Spread final : Vjp {
    Vjp& g;
    int64_t rank;
    Spread(Vjp& g, int64_t rank) : g(g), rank(rank) {}
    Builder& builder() override { return g.builder(); }
    const Node& node() const override { return g.node(); }
    Value* in(size_t index) const override { return g.in(index); }
    Value* out(size_t index) const override { return g.out(index); }
    Value* dout(size_t index) const override {
      Value* value = g.dout(index);
      if (index == 0 || value == nullptr) return value;
      return along(Expression(g.builder(), value), 1, rank);
    }
    bool needs(size_t input) const override { return g.needs(input); }
    void add(size_t input, Value* gradient) override { g.add(input, gradient); }
    Value* add_output(Type type, std::string attribute, AttributeValue value) override {
      return g.add_output(std::move(type), std::move(attribute), std::move(value));
    }
  } spread(g, x.rank());
  const auto gradients = normalised_backward_gradients(n, dy, shaped, spread);
  if (g.needs(0)) g.add(0, gradients.dy);
  if (g.needs(1)) g.add(1, gradients.x);
  if (!weight.is_none() && g.needs(2)) g.add(2, reshaped(gradients.weight, weight.shape()));
}

/// The mean and the sum of squared differences from it, for each channel: [1, C, 1, ...].
struct Moments {
  Expression mean, squares;
};

/// The moments in double precision, as in eager. For float32 both take one pass, since squares are
/// exact in double; for float64 the second follows the first.
Moments moments_of(const Expression& x, const std::vector<int64_t>& dims, const Dim& count) {
  if (x.dtype() == DType::f64) {
    const auto mean = mean_over(x, dims, true);
    const auto centred = x - mean;
    return {.mean = mean, .squares = sum_over(centred * centred, dims, true)};
  }
  const auto wide = cast(x, DType::f64);
  const auto total = sum_over(wide, dims, true);
  const auto mean = total / number(*x.builder(), count);
  const auto squares = sum_over(wide * wide, dims, true) - total * mean;
  return {.mean = mean, .squares = apply(op::clamp_min, squares, 0)};
}

/// One value for each channel, widened and shaped to broadcast with x.
Expression wide_along(const Expression& channels, const Expression& x) {
  return widened(along(channels, 1, x.rank()));
}

/// The decomposition of batch_norm_train and batch_norm_no_stats, for fusion. Eager normalises by
/// the mean and deviation that it returns, in the precision of the parameters.
std::vector<Value*> batch_norm_in_parts(const Decompose& d, bool has_statistics) {
  const auto x = widened(in(d, 0)), weight = in(d, 1), bias = in(d, 2);
  const size_t next = has_statistics ? 5 : 3;
  const auto momentum = in(d, next), eps = in(d, next + 1);
  const auto dims = by_channel(x.rank()).reduced;
  Dim count = 1;
  for (const int64_t dim : dims) count = count * x.shape()[static_cast<size_t>(dim)];
  const Moments moments = moments_of(x, dims, count);
  const Shape channels{x.shape()[1]};
  const DType given = d.node.outputs[1]->type.dtype;
  const auto vector = [&](const Expression& y) { return reshaped(cast(y, given), channels); };
  const auto variance = moments.squares / number(d.builder, count);
  const auto mean = widened(cast(moments.mean, given));
  const auto deviation = widened(cast(1 / apply(op::sqrt, variance + eps), given));
  auto scale = deviation;
  if (!weight.is_none()) scale = scale * wide_along(weight, x);
  // Subtracts first: with a mean far from zero, `x * scale` would round the differences away.
  auto normal = (x - mean) * scale;
  if (!bias.is_none()) normal = normal + wide_along(bias, x);
  std::vector<Value*> results{normal, vector(mean), vector(deviation)};
  if (!has_statistics) return results;
  const auto blended = [&](const Expression& now, const Expression& before) {
    const auto old = cast(along(before, 1, x.rank()), DType::f64);
    return vector(now * momentum + (old - old * momentum));
  };
  results.push_back(blended(moments.mean, in(d, 3)));
  results.push_back(blended(moments.squares / number(d.builder, count - 1), in(d, 4)));
  return results;
}

/// The decomposition of native_batch_norm_backward, for fusion.
std::vector<Value*> batch_norm_backward_in_parts(const Decompose& d) {
  const auto dy = widened(in(d, 0)), x = widened(in(d, 1)), weight = in(d, 2);
  const Normalised n{.x = x,
                     .mean = wide_along(in(d, 5), x),
                     .scale = wide_along(in(d, 6), x),
                     .grouping = by_channel(x.rank())};
  const auto& dims = n.grouping.reduced;
  const auto count = number(d.builder, n.count());
  const auto centred = x - n.mean;
  const auto total = sum_over(dy, dims, true), along_x = sum_over(dy * centred, dims, true);
  const auto scale = weight.is_none() ? n.scale : n.scale * wide_along(weight, x);
  const auto slope = along_x / count * n.scale * n.scale;
  const Shape channels{x.shape()[1]};
  std::vector<Value*> results{(dy - total / count - centred * slope) * scale,
                              reshaped(along_x * n.scale, channels), reshaped(total, channels)};
  for (size_t i = 0; i < results.size(); ++i)
    if (d.node.outputs[i]->type.is_none()) results[i] = d.builder.none();
  return results;
}

/// The operands of the composites, whose order differs.
struct BatchNorm {
  Expression input, weight, bias, running_mean, running_var, momentum, eps;
  bool training = false;
};

std::vector<Type> infer_batch_norm(const Infer& infer, size_t running_mean, size_t running_var) {
  constexpr size_t eps = 6;
  const Type& input = batch_input(infer);
  require_vectors(infer, {1, 2, 3, 4});
  const bool has_statistics = !infer.type(running_mean).is_none();
  if (has_statistics == infer.type(running_var).is_none())
    infer.fail("one of the running statistics is missing");
  const bool training = flag_attribute(infer.attributes, "training");
  if (!training && !has_statistics) infer.fail("evaluation without running statistics");
  if (training && graph::constant_number(infer.inputs[eps]).value_or(0) <= 0)
    infer.fail("training with an eps that is not known to be positive");
  Dim count = 1;
  for (size_t i = 0; i < input.shape.size(); ++i)
    if (i != 1) count = count * input.shape[i];
  if (training && count.lower_bound().value_or(0) < 2)
    infer.fail("training needs more than one value for each channel");
  const Type updated = training && has_statistics ? channel_type(input) : Type::none();
  return {input, updated, updated};
}

/// (x - mean) * weight / sqrt(var + eps) + bias, by two vectors and one multiplication. Half
/// precision is computed in float32 and rounded once, as in eager.
Expression evaluated(const BatchNorm& norm) {
  const int64_t rank = norm.input.rank();
  const DType dtype = norm.input.dtype();
  Expression scale = 1 / apply(op::sqrt, widened(norm.running_var) + norm.eps);
  if (!norm.weight.is_none()) scale = scale * widened(norm.weight);
  Expression shift = -(widened(norm.running_mean) * scale);
  if (!norm.bias.is_none()) shift = shift + widened(norm.bias);
  return cast(widened(norm.input) * along(scale, 1, rank) + along(shift, 1, rank), dtype);
}

std::vector<Value*> decompose_batch_norm(const BatchNorm& norm) {
  Builder& builder = *norm.input.builder();
  const Expression none(builder, builder.none());
  if (!norm.training) return {evaluated(norm), none, none};
  if (norm.running_mean.is_none()) {
    const auto results = apply_all(op::batch_norm_no_stats, {{"training", true}}, norm.input,
                                   norm.weight, norm.bias, norm.momentum, norm.eps);
    return {results[0], none, none};
  }
  const auto results =
      apply_all(op::batch_norm_train, {{"training", true}}, norm.input, norm.weight, norm.bias,
                norm.running_mean, norm.running_var, norm.momentum, norm.eps);
  return {results[0], results[3], results[4]};
}

// ---- Layers -----------------------------------------------------------------------------------

int64_t inner_rank(const Attributes& attributes) {
  return static_cast<int64_t>(list_attribute(attributes, "normalized_shape").size());
}

/// Fails unless the input ends in the normalised shape, and operands `inputs` have it.
const Type& layer_input(const Infer& infer, std::initializer_list<size_t> inputs) {
  const Type& input = floating_tensor(infer, 0);
  const Shape inner = list_attribute(infer.attributes, "normalized_shape");
  const bool ends = inner.size() <= input.shape.size() && !inner.empty() &&
                    std::equal(inner.rbegin(), inner.rend(), input.shape.rbegin());
  if (!ends) infer.fail(cat("input ", input, " does not end in the normalised shape"));
  for (const size_t i : inputs) {
    if (infer.type(i).is_none()) continue;
    if (!(tensor_type(infer, i) == Type::tensor(input.dtype, inner)))
      infer.fail(cat("parameter ", infer.type(i), " for ", input));
  }
  return input;
}

std::vector<Type> infer_native_layer_norm(const Infer& infer) {
  const Type& input = layer_input(infer, {1, 2});
  Shape outer = input.shape;
  for (size_t i = outer.size() - static_cast<size_t>(inner_rank(infer.attributes));
       i < outer.size(); ++i)
    outer[i] = 1;
  const Type statistic = Type::tensor(input.dtype, outer);
  return {input, statistic, statistic};
}

Normalised by_sample(const Node& node, const Expression& x, const Expression& mean,
                     const Expression& scale) {
  return {.x = x,
          .mean = mean,
          .scale = scale,
          .grouping = by_sample(x.rank(), inner_rank(node.attributes))};
}

/// Whether kernels compute the gradients of a layer norm as fast as ATen. They take one pass over
/// rows and one over columns, where ATen reads once, so the operands must stay in the cache.
bool suits_kernels(const Type& input, const Grouping& grouping) {
  return (input.dtype == DType::f32 || input.dtype == DType::f64) && !grouping.shared.empty() &&
         typical_bytes(input) <= policy::kLayerNormCachedBytes &&
         has_rows_enough({input.shape, grouping.reduced});
}

/// The gradients that come through the output only; the saved statistics have their own.
void layer_norm_gradient_in_parts(Vjp& g, const Normalised& n) {
  const auto dy = dout(g), weight = in(g, 1);
  const auto h = weight.is_none() ? dy : dy * weight;
  if (g.needs(0)) g.add(0, n.scale * n.projected(h));
  if (g.needs(1)) g.add(1, sum_over(dy * n.hat(), n.grouping.shared, false));
  if (g.needs(2)) g.add(2, sum_over(dy, n.grouping.shared, false));
}

void layer_norm_gradient(Vjp& g) {
  const auto x = in(g, 0);
  const auto n = by_sample(g.node(), x, out(g, 1), out(g, 2));
  if (g.dout(0) != nullptr && suits_kernels(x.type(), n.grouping)) {
    layer_norm_gradient_in_parts(g, n);
  } else if (g.dout(0) != nullptr) {
    const std::vector<bool> mask{g.needs(0), g.needs(1), g.needs(2)};
    const Attributes attributes{{"normalized_shape", *g.node().attributes.find("normalized_shape")},
                                {"output_mask", mask}};
    const auto results = apply_all(op::native_layer_norm_backward, attributes, dout(g), x,
                                   out(g, 1), out(g, 2), in(g, 1), in(g, 2));
    for (size_t i = 0; i < 3; ++i)
      if (mask[i]) g.add(i, results[i]);
  }
  if (!g.needs(0)) return;
  if (g.dout(1) != nullptr) {
    const auto dmean = dout(g, 1);
    saved_statistics_gradient(g, n, &dmean, nullptr);
  }
  if (g.dout(2) != nullptr) {
    const auto dscale = dout(g, 2);
    saved_statistics_gradient(g, n, nullptr, &dscale);
  }
}

std::vector<Type> infer_layer_norm_backward(const Infer& infer) {
  const Type& input = floating_tensor(infer, 1);
  const Shape inner = list_attribute(infer.attributes, "normalized_shape");
  return masked_types(infer, input, Type::tensor(input.dtype, inner));
}

void layer_norm_backward_gradient(Vjp& g) {
  const auto dy = in(g, 0), x = in(g, 1), weight = in(g, 4);
  const auto n = by_sample(g.node(), x, in(g, 2), in(g, 3));
  const auto gradients = normalised_backward_gradients(n, dy, weight, g);
  if (g.needs(0)) g.add(0, gradients.dy);
  if (g.needs(1)) g.add(1, gradients.x);
  if (!weight.is_none() && g.needs(4)) g.add(4, reshaped(gradients.weight, weight.shape()));
}

/// The decomposition of native_layer_norm, for fusion.
std::vector<Value*> layer_norm_in_parts(const Decompose& d) {
  const auto x = in(d, 0), weight = in(d, 1), bias = in(d, 2);
  const auto dims = by_sample(x.rank(), inner_rank(d.node.attributes)).reduced;
  const auto mean = mean_over(x, dims, true);
  const auto centred = x - mean;
  const auto scale = apply(op::rsqrt, mean_over(centred * centred, dims, true) + in(d, 3));
  Expression y = centred * scale;
  if (!weight.is_none()) y = y * weight;
  if (!bias.is_none()) y = y + bias;
  return {y, mean, scale};
}

std::vector<Type> infer_layer_norm(const Infer& infer) { return {layer_input(infer, {1, 2})}; }

std::vector<Value*> decompose_layer_norm(const Decompose& d) {
  return {apply(op::native_layer_norm,
                {{"normalized_shape", *d.node.attributes.find("normalized_shape")}}, in(d, 0),
                in(d, 1), in(d, 2), in(d, 3))};
}

std::vector<Type> infer_group_norm(const Infer& infer) {
  const Type& input = batch_input(infer);
  require_vectors(infer, {1, 2});
  const int64_t groups = integer_attribute(infer.attributes, "num_groups");
  const Dim& channels = input.shape[1];
  if (groups < 1 || !channels.is_constant() || channels.value() % groups != 0)
    infer.fail(cat(groups, " groups of ", channels, " channels"));
  return {input};
}

/// Group norm: each group of channels of a sample is one row of a layer norm; then the affine map
/// of the channels.
std::vector<Value*> groups_normalised(const Decompose& d, const Dim& groups, size_t eps) {
  const auto x = in(d, 0), weight = in(d, 1), bias = in(d, 2);
  Dim inner = floor_divide(x.shape()[1], groups);
  for (size_t i = 2; i < x.shape().size(); ++i) inner = inner * x.shape()[i];
  const Expression none(d.builder, d.builder.none());
  const auto rows = reshaped(x, {x.shape()[0] * groups, inner});
  Expression y = reshaped(apply(op::native_layer_norm, {{"normalized_shape", Shape{inner}}}, rows,
                                none, none, in(d, eps)),
                          x.shape());
  if (!weight.is_none()) y = y * along(weight, 1, x.rank());
  if (!bias.is_none()) y = y + along(bias, 1, x.rank());
  return {y};
}

std::vector<Value*> decompose_group_norm(const Decompose& d) {
  return groups_normalised(d, integer_attribute(d.node.attributes, "num_groups"), 3);
}

std::vector<Type> infer_instance_norm(const Infer& infer) {
  const Type& input = batch_input(infer);
  require_vectors(infer, {1, 2});
  if (!infer.type(3).is_none() || !infer.type(4).is_none())
    infer.fail("running statistics are written");
  if (!flag_attribute(infer.attributes, "use_input_stats")) infer.fail("no statistics are given");
  return {input};
}

// ---- Vectors ----------------------------------------------------------------------------------

std::vector<Type> infer_normalize(const Infer& infer) {
  const Type& input = floating_tensor(infer, 0);
  if (!constant_number(infer.inputs[1])) infer.fail("the order of the norm must be known");
  wrap_dim(infer, integer_attribute(infer.attributes, "dim"), input.rank());
  return {input};
}

std::vector<Value*> decompose_normalize(const Decompose& d) {
  const auto x = in(d, 0);
  const Shape dims{Dim(integer_attribute(d.node.attributes, "dim"))};
  const auto length = apply(op::vector_norm, {{"dim", dims}, {"keepdim", true}}, x, in(d, 1));
  return {x / apply(op::clamp_min, length, in(d, 2))};
}

// ---- Embeddings -------------------------------------------------------------------------------

Type embedded(const Infer& infer, size_t weight, size_t indices) {
  const Type& table = tensor_of_rank(infer, weight, 2);
  const Type& positions = tensor_type(infer, indices);
  if (positions.dtype != DType::i64 && positions.dtype != DType::i32)
    infer.fail(cat("indices must be i64 or i32, came ", positions));
  if (flag_attribute(infer.attributes, "sparse")) infer.fail("a sparse gradient");
  Shape shape = positions.shape;
  shape.push_back(table.shape[1]);
  return Type::tensor(table.dtype, shape);
}

void embedding_gradient(Vjp& g) {
  const Attributes& attributes = g.node().attributes;
  g.add(0, apply(op::embedding_dense_backward,
                 {{"num_weights", to_attribute(in(g, 0).shape()[0])},
                  {"padding_idx", *attributes.find("padding_idx")},
                  {"scale_grad_by_freq", *attributes.find("scale_grad_by_freq")}},
                 dout(g), in(g, 1)));
}

void embedding_backward_gradient(Vjp& g) {
  const Attributes& attributes = g.node().attributes;
  if (flag_attribute(attributes, "scale_grad_by_freq"))
    throw TypeError("embedding: no second gradient with scale_grad_by_freq");
  const auto indices = in(g, 1);
  const Dim padding = dim_attribute(attributes, "padding_idx");
  const auto rows = apply(op::embedding, dout(g), indices);
  if (padding.is_constant() && padding.value() < 0) return g.add(0, rows);
  const auto padded = apply(op::eq, indices, number(g.builder(), padding));
  g.add(0, apply(op::masked_fill, rows, unsqueezed(padded, -1), 0));
}

/// The padding row. nn.functional counts a negative padding_idx from the end; None means none.
int64_t padding_row(const Infer& infer) {
  if (infer.attributes.is_none("padding_idx")) return -1;
  const int64_t given = integer_attribute(infer.attributes, "padding_idx");
  const Dim& rows = infer.type(1).shape[0];
  if (!rows.is_constant() || given >= rows.value() || given < -rows.value())
    infer.fail(cat("padding_idx ", given, " of ", rows));
  return given < 0 ? given + rows.value() : given;
}

std::vector<Type> infer_functional_embedding(const Infer& infer) {
  if (!infer.type(2).is_none()) infer.fail("max_norm changes the weight");
  const Type type = embedded(infer, 1, 0);
  padding_row(infer);
  return {type};
}

std::vector<Value*> decompose_functional_embedding(const Decompose& d) {
  const Infer infer{
      .op = *d.node.op, .inputs = d.inputs, .attributes = d.node.attributes, .blocks = {}};
  return {apply(op::embedding,
                {{"padding_idx", padding_row(infer)},
                 {"scale_grad_by_freq", *d.node.attributes.find("scale_grad_by_freq")}},
                in(d, 1), in(d, 0))};
}

}  // namespace

constinit const OpDef op::batch_norm_train{
    .name = "batch_norm_train",
    .doc =
        "Batch norm by the batch's own statistics. Results: output, saved mean, saved one over "
        "deviation, new running mean, new running variance.",
    .schema =
        "(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, "
        "bool training, float momentum, float eps) -> "
        "(Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
    .aten = "_native_batch_norm_legit_functional",
    .layout = Layout::normalised_image,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .reduces = Reduces::all_but_channels,
    .rounds = Rounds::at_the_end,
    .images = {.operands = 0b1, .results = 0b1},
    .infer = infer_batch_norm_train,
    .vjp = [](Vjp& g) { batch_norm_gradient<true>(g, g.in(6)); },
    .decompose = [](const Decompose& d) { return batch_norm_in_parts(d, true); },
};

constinit const OpDef op::batch_norm_no_stats{
    .name = "batch_norm_no_stats",
    .doc = "batch_norm_train without running statistics.",
    .schema =
        "(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) "
        "-> (Tensor, Tensor, Tensor)",
    .aten = "_native_batch_norm_legit.no_stats",
    .layout = Layout::normalised_image,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .reduces = Reduces::all_but_channels,
    .rounds = Rounds::at_the_end,
    .images = {.operands = 0b1, .results = 0b1},
    .infer = infer_batch_norm_no_stats,
    .vjp = [](Vjp& g) { batch_norm_gradient<false>(g, g.in(4)); },
    .decompose = [](const Decompose& d) { return batch_norm_in_parts(d, false); },
};

constinit const OpDef op::batch_norm_backward{
    .name = "native_batch_norm_backward",
    .doc = "Gradients of a batch norm in training for input, weight and bias.",
    .schema =
        "(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, "
        "Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, "
        "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    .aten = "native_batch_norm_backward",
    .layout = Layout::gradient_image,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .reduces = Reduces::all_but_channels,
    .rounds = Rounds::at_the_end,
    .images = {.operands = 0b11, .results = 0b1},
    .infer = infer_batch_norm_backward,
    .vjp = batch_norm_backward_gradient,
    .decompose = batch_norm_backward_in_parts,
};

constinit const OpDef op::batch_norm{
    .name = "batch_norm",
    .doc =
        "Batch norm. Results: output, and in training the new running mean and variance, which "
        "the caller writes back.",
    .schema =
        "(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
        "bool training, float momentum, float eps, bool cudnn_enabled=True) -> "
        "(Tensor output, Tensor running_mean, Tensor running_var)",
    .python = "batch_norm",
    .traits = composite,
    .layout = Layout::normalised_image,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .constants = "running_mean running_var",
    .autocast = Autocast::widened,
    .infer = [](const Infer& infer) { return infer_batch_norm(infer, 3, 4); },
    .decompose =
        [](const Decompose& d) {
          return decompose_batch_norm({.input = in(d, 0),
                                       .weight = in(d, 1),
                                       .bias = in(d, 2),
                                       .running_mean = in(d, 3),
                                       .running_var = in(d, 4),
                                       .momentum = in(d, 5),
                                       .eps = in(d, 6),
                                       .training = flag_attribute(d.node.attributes, "training")});
        },
};

constinit const OpDef op::functional_batch_norm{
    .name = "functional_batch_norm",
    .doc = "batch_norm with nn.functional's parameters, and the same results.",
    .schema =
        "(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, "
        "Tensor? bias=None, bool training=False, float momentum=0.1, float eps=1e-05) -> "
        "(Tensor output, Tensor running_mean, Tensor running_var)",
    .python = "nn.functional.batch_norm",
    .traits = composite,
    .layout = Layout::normalised_image,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .constants = "running_mean running_var",
    .autocast = Autocast::widened,
    .infer = [](const Infer& infer) { return infer_batch_norm(infer, 1, 2); },
    .decompose =
        [](const Decompose& d) {
          return decompose_batch_norm({.input = in(d, 0),
                                       .weight = in(d, 3),
                                       .bias = in(d, 4),
                                       .running_mean = in(d, 1),
                                       .running_var = in(d, 2),
                                       .momentum = in(d, 5),
                                       .eps = in(d, 6),
                                       .training = flag_attribute(d.node.attributes, "training")});
        },
};

constinit const OpDef op::native_layer_norm{
    .name = "native_layer_norm",
    .doc = "Layer norm over the last dimensions. Results: output, mean, one over deviation.",
    .schema =
        "(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
        "(Tensor, Tensor, Tensor)",
    .aten = "native_layer_norm",
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .reduces = Reduces::normalised,
    .rounds = Rounds::at_the_end,
    .infer = infer_native_layer_norm,
    .vjp = layer_norm_gradient,
    .decompose = layer_norm_in_parts,
};

constinit const OpDef op::native_layer_norm_backward{
    .name = "native_layer_norm_backward",
    .doc = "Gradients of a layer norm for input, weight and bias.",
    .schema =
        "(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd, "
        "Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    .aten = "native_layer_norm_backward",
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = infer_layer_norm_backward,
    .vjp = layer_norm_backward_gradient,
};

constinit const OpDef op::layer_norm{
    .name = "layer_norm",
    .doc = "Layer norm over the last dimensions.",
    .schema =
        "(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
        "float eps=1e-05, bool cudnn_enable=True) -> Tensor",
    .python = "layer_norm nn.functional.layer_norm",
    .traits = composite,
    .layout = Layout::contiguous,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::widened,
    .infer = infer_layer_norm,
    .decompose = decompose_layer_norm,
};

constinit const OpDef op::instance_norm{
    .name = "instance_norm",
    .doc = "Normalisation of each channel of each sample.",
    .schema =
        "(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
        "bool use_input_stats, float momentum, float eps, bool cudnn_enabled=True) -> Tensor",
    .python = "instance_norm",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::widened,
    .infer = infer_instance_norm,
    .decompose = [](const Decompose& d) { return groups_normalised(d, in(d, 0).shape()[1], 6); },
};

constinit const OpDef op::group_norm{
    .name = "group_norm",
    .doc = "Normalisation of groups of channels of each sample.",
    .schema =
        "(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
        "bool cudnn_enabled=True) -> Tensor",
    .python = "group_norm",  // nn.functional's first counts the values of a channel
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::widened,
    .infer = infer_group_norm,
    .decompose = decompose_group_norm,
};

constinit const OpDef op::normalize{
    .name = "normalize",
    .doc = "Vectors along a dimension divided by their length, which is at least eps.",
    .schema = "(Tensor input, float p=2.0, int dim=1, float eps=1e-12) -> Tensor",
    .python = "nn.functional.normalize",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_normalize,
    .decompose = decompose_normalize,
};

constinit const OpDef op::embedding{
    .name = "embedding",
    .doc = "Rows of a table. The row padding_idx (-1: none) gets no gradient.",
    .schema =
        "(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, "
        "bool sparse=False) -> Tensor",
    .aten = "embedding",
    .python = "embedding",
    .layout = Layout::contiguous,
    .raises = Raises::outside_range,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .access = Access::embedded,
    .infer = [](const Infer& infer) -> std::vector<Type> { return {embedded(infer, 0, 1)}; },
    .vjp = embedding_gradient,
    .rows = for_rows::embedding,
};

constinit const OpDef op::embedding_dense_backward{
    .name = "embedding_dense_backward",
    .doc = "The gradient added up by rows of the table.",
    .schema =
        "(Tensor grad_output, Tensor indices, int num_weights, int padding_idx, "
        "bool scale_grad_by_freq) -> Tensor",
    .aten = "embedding_dense_backward",
    .raises = Raises::never,
    .saves = Saves::values,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const Type& gradient = tensor_type(infer, 0);
      if (gradient.shape.empty()) infer.fail(janus::cat("gradient ", gradient));
      return {Type::tensor(
          gradient.dtype, {dim_attribute(infer.attributes, "num_weights"), gradient.shape.back()})};
    },
    .vjp = embedding_backward_gradient,
};

constinit const OpDef op::functional_embedding{
    .name = "functional_embedding",
    .doc = "embedding with nn.functional's parameters.",
    .schema =
        "(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, "
        "float norm_type=2.0, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    .python = "nn.functional.embedding",
    .traits = composite,
    .layout = Layout::contiguous,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .has_plain_gradient = true,
    .infer = infer_functional_embedding,
    .decompose = decompose_functional_embedding,
};

}  // namespace janus
