// Losses. Most are composites over elementwise operators, log_softmax and `nll_loss`, so that they
// fuse and can be differentiated to any order. `reduction` is 0 (none), 1 (mean), 2 (sum) as in
// ATen, or the word as in nn.functional (operators with the prefix `functional_`).
#include <array>

#include "ops/element.h"
#include "ops/expression.h"
#include "ops/index_space.h"
#include "ops/row_rules.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

enum Reduction : int64_t { none = 0, mean = 1, total = 2 };

int64_t reduction_of(const Attributes& attributes) {
  const auto* word = std::get_if<std::string>(attributes.find("reduction"));
  if (word == nullptr) {
    const int64_t number = integer_attribute(attributes, "reduction");
    if (number < none || number > total) throw TypeError(cat("reduction ", number));
    return number;
  }
  if (*word == "none") return none;
  if (*word == "mean") return mean;
  if (*word == "sum") return total;
  throw TypeError(cat("reduction ", *word));
}

/// Fails on nn.functional's deprecated parameters for the reduction.
void refuse_deprecated(const Infer& infer) {
  for (const char* name : {"size_average", "reduce"})
    if (infer.attributes.has(name) && !infer.attributes.is_none(name))
      infer.fail(cat("the deprecated parameter ", name));
}

Expression reduce(const Expression& loss, int64_t reduction) {
  if (reduction == none) return loss;
  return apply(reduction == mean ? op::mean : op::sum, loss);
}

Shape reduced(int64_t reduction, Shape shape) { return reduction == none ? shape : Shape{}; }

/// The rule of two floating tensors that broadcast. nn.functional warns if shapes differ, so its
/// forms require equal ones.
std::vector<Type> infer_pair(const Infer& infer) {
  refuse_deprecated(infer);
  const int64_t reduction = reduction_of(infer.attributes);
  const DType dtype = promoted(infer, std::array<size_t, 2>{0, 1});
  if (!is_floating(dtype)) infer.fail(cat(infer.type(0), ", ", infer.type(1)));
  const bool functional = std::holds_alternative<std::string>(*infer.attributes.find("reduction"));
  if (functional && tensor_type(infer, 0).shape != tensor_type(infer, 1).shape)
    infer.fail(cat("shapes differ: ", infer.type(0), ", ", infer.type(1)));
  const Shape shape = broadcast_inputs(infer, std::array<size_t, 2>{0, 1});
  return {Type::tensor(dtype, reduced(reduction, shape))};
}

/// The same with a weight as operand 2, which must be None.
std::vector<Type> infer_pair_without_weight(const Infer& infer) {
  if (!infer.type(2).is_none()) infer.fail("a weight");
  return infer_pair(infer);
}

std::vector<Type> infer_known_third(const Infer& infer, size_t input) {
  if (!constant_number(infer.inputs[input])) infer.fail("the parameter must be known");
  return infer_pair(infer);
}

/// The errors of all elements by one of the operators below, then the reduction.
std::vector<Value*> reduced_errors(const Decompose& d, const OpDef& errors) {
  const Attributes unreduced{{"reduction", int64_t{none}}};
  const bool has_limit = &errors != &op::squared_errors;
  const Expression loss = has_limit ? apply(errors, unreduced, in(d, 0), in(d, 1), in(d, 2))
                                    : apply(errors, unreduced, in(d, 0), in(d, 1));
  return {reduce(loss, reduction_of(d.node.attributes))};
}

std::vector<Value*> decompose_squared(const Decompose& d) {
  return reduced_errors(d, op::squared_errors);
}

std::vector<Value*> decompose_absolute(const Decompose& d) {
  return {reduce(apply(op::abs, in(d, 0) - in(d, 1)), reduction_of(d.node.attributes))};
}

std::vector<Value*> decompose_smooth(const Decompose& d) {
  const double beta = *constant_number(d.inputs[2]);
  if (!(beta >= 0)) throw TypeError(cat("smooth_l1_loss: beta ", beta));
  if (beta == 0) return decompose_absolute(d);
  return reduced_errors(d, op::smooth_errors);
}

std::vector<Value*> decompose_huber(const Decompose& d) {
  const double delta = *constant_number(d.inputs[2]);
  if (!(delta > 0)) throw TypeError(cat("huber_loss: delta ", delta));
  return reduced_errors(d, op::huber_errors);
}

std::vector<Type> infer_errors(const Infer& infer) {
  const DType dtype = promoted(infer, std::array<size_t, 2>{0, 1});
  if (!is_floating(dtype)) infer.fail(cat(infer.type(0), ", ", infer.type(1)));
  return {Type::tensor(dtype, broadcast_inputs(infer, std::array<size_t, 2>{0, 1}))};
}

/// Gradients of both operands. As in eager, the target's gradient is computed with the operands
/// swapped, which decides the signs of zeros. `slope(difference)`: the derivative times the
/// result's gradient.
template <class Slope>
void error_gradients(Vjp& g, Slope&& slope) {
  add_gradient(g, 0, [&] { return slope(in(g, 0) - in(g, 1)); });
  add_gradient(g, 1, [&] { return slope(in(g, 1) - in(g, 0)); });
}

/// below(difference) if the difference is nearer to zero than the limit, else its sign times
/// `beyond`.
template <class Below>
Expression bounded_slope(Vjp& g, const Expression& difference, const Expression& beyond,
                         Below&& below) {
  const auto is_large = apply(op::ge, apply(op::abs, difference), in(g, 2));
  // Keeps infinities out of the side that is not selected: their gradient would be NaN.
  const auto small = apply(op::where, is_large, 0, difference);
  return apply(op::where, is_large, apply(op::sign, difference) * beyond, below(small));
}

Element size_of_error(ScalarCode& k, bool rounds) {
  const Element difference = element(k, 0) - element(k, 1);
  return maths("fabs", rounds ? rounded(difference) : difference);
}

/// Smooth L1 of an element. Eager rounds float16 at each step, bf16 at the end.
Scalar smooth_error(ScalarCode& k) {
  const bool rounds = k.node().output()->type.dtype != DType::bf16;
  const auto step = [&](const Element& x) { return rounds ? rounded(x) : x; };
  const Element size = size_of_error(k, rounds), beta = step(element(k, 2));
  const Element square = step(step(0.5 * size) * size);
  return choice(size < beta, square / beta, size - step(0.5 * beta));
}

/// The Huber error of an element. Eager rounds bf16 at each step, float16 at the end.
Scalar huber_error(ScalarCode& k) {
  const bool rounds = k.node().output()->type.dtype != DType::f16;
  const auto step = [&](const Element& x) { return rounds ? rounded(x) : x; };
  const Element size = size_of_error(k, rounds), delta = step(element(k, 2));
  const Element beyond = delta * step(size - step(0.5 * delta));
  return choice(size <= delta, step(0.5 * size) * size, beyond);
}

Expression divergence(const Decompose& d) {
  const auto input = in(d, 0), target = in(d, 1);
  if (flag_attribute(d.node.attributes, "log_target"))
    return apply(op::exp, target) * (target - input);
  return apply(op::xlogy, target, target) - target * input;
}

std::vector<Type> infer_functional_divergence(const Infer& infer) {
  refuse_deprecated(infer);
  const std::string reduction = text_attribute(infer.attributes, "reduction");
  if (reduction == "mean") infer.fail("eager warns about the reduction mean");
  if (reduction != "none" && reduction != "sum" && reduction != "batchmean")
    infer.fail(cat("reduction ", reduction));
  const Type& input = floating_tensor(infer, 0);
  if (!(input == tensor_type(infer, 1))) infer.fail("input and target differ in type");
  if (reduction == "batchmean" && input.shape.empty()) infer.fail("batchmean of a number");
  return {Type::tensor(input.dtype, reduction == "none" ? input.shape : Shape{})};
}

std::vector<Value*> decompose_functional_divergence(const Decompose& d) {
  const std::string reduction = text_attribute(d.node.attributes, "reduction");
  const auto loss = divergence(d);
  if (reduction == "none") return {loss};
  const auto sum = sum_all(loss);
  if (reduction == "sum") return {sum};
  return {sum / number(d.builder, in(d, 0).shape()[0])};
}

// ---- Binary cross entropy ---------------------------------------------------------------------

std::vector<Type> infer_binary(const Infer& infer) {
  const Type& input = floating_tensor(infer, 0);
  if (!(floating_tensor(infer, 1) == input)) infer.fail("input and target differ in type");
  if (!infer.type(2).is_none()) {
    const Shape& weight = floating_tensor(infer, 2).shape;
    if (infer.type(2).dtype != input.dtype || weight.size() > input.shape.size() ||
        broadcast(infer, weight, input.shape) != input.shape)
      infer.fail(cat("weight ", infer.type(2), " for ", input));
  }
  return {Type::tensor(input.dtype, reduced(reduction_of(infer.attributes), input.shape))};
}

/// The gradient of each element, times the weight.
Expression spread_gradient(const Vjp& g) {
  const auto x = in(g, 0), weight = in(g, 2);
  const int64_t reduction = reduction_of(g.node().attributes);
  Expression dy = dout(g);
  if (reduction == mean) dy = dy / number(*dy.builder(), element_count(x.shape()));
  return weight.is_none() ? dy : dy * weight;
}

void binary_gradient(Vjp& g) {
  const auto x = in(g, 0), target = in(g, 1);
  constexpr double smallest = 1e-12;
  add_gradient(g, 0, [&] {
    const auto slope = (x - target) / apply(op::clamp_min, (1 - x) * x, smallest);
    return spread_gradient(g) * slope;
  });
  add_gradient(g, 1,
               [&] { return spread_gradient(g) * (apply(op::log1p, -x) - apply(op::log, x)); });
  if (g.needs(2)) throw TypeError("binary_cross_entropy: no gradient for the weight");
}

std::vector<Type> infer_functional_binary(const Infer& infer) {
  refuse_deprecated(infer);
  return infer_binary(infer);
}

std::vector<Value*> decompose_functional_binary(const Decompose& d) {
  return {apply(op::binary_cross_entropy, {{"reduction", reduction_of(d.node.attributes)}},
                in(d, 0), in(d, 1), in(d, 2))};
}

std::vector<Type> infer_logits(const Infer& infer) {
  refuse_deprecated(infer);
  const Type& input = floating_tensor(infer, 0);
  if (tensor_type(infer, 1).shape != input.shape || infer.type(1).dtype != input.dtype)
    infer.fail("input and target differ in type");
  Shape shape = input.shape;
  for (const size_t factor : {2, 3}) {
    if (infer.type(factor).is_none()) continue;
    if (floating_tensor(infer, factor).dtype != input.dtype) infer.fail("weights of another dtype");
    shape = broadcast(infer, shape, infer.type(factor).shape);
  }
  if (shape != input.shape) infer.fail("weights that are larger than the input");
  return {Type::tensor(input.dtype, reduced(reduction_of(infer.attributes), shape))};
}

std::vector<Value*> decompose_logits(const Decompose& d) {
  const auto x = in(d, 0), target = in(d, 1), weight = in(d, 2), positive_weight = in(d, 3);
  Expression likelihood = apply(op::log_sigmoid, x);
  if (!positive_weight.is_none()) likelihood = ((positive_weight - 1) * target + 1) * likelihood;
  Expression loss = (1 - target) * x - likelihood;
  if (!weight.is_none()) loss = loss * weight;
  return {reduce(loss, reduction_of(d.node.attributes))};
}

// ---- Negative log likelihood -------------------------------------------------------------------

/// Checks classes along dimension 1 (of one sample: dimension 0), the target and the weight.
void check_classes(const Infer& infer, const Type& input, const Type& target) {
  if (target.dtype != DType::i64) infer.fail(cat("the target must be i64, came ", target));
  const Dim& classes = input.shape[input.rank() == 1 ? 0 : 1];
  if (infer.type(2).is_none()) return;
  const Type& weight = tensor_of_rank(infer, 2, 1);
  if (weight.dtype != input.dtype) infer.fail(cat("weight ", weight));
  require_equal(infer, weight.shape[0], classes, "weights and classes");
}

/// The shape of the target for an input.
Shape target_shape(const Shape& input) {
  if (input.size() == 1) return {};
  Shape shape = input;
  shape.erase(shape.begin() + 1);
  return shape;
}

template <bool plane>
std::vector<Type> infer_nll(const Infer& infer) {
  const Type& input = floating_tensor(infer, 0);
  const Type& target = tensor_type(infer, 1);
  const bool fits = plane ? input.rank() == 4 : input.rank() == 1 || input.rank() == 2;
  if (!fits || target.shape != target_shape(input.shape))
    infer.fail(cat("input ", input, ", target ", target));
  check_classes(infer, input, target);
  const Shape shape = reduced(reduction_of(infer.attributes), target.shape);
  return {Type::tensor(input.dtype, shape), Type::tensor(input.dtype, {})};
}

std::vector<Type> infer_nll_backward(const Infer& infer) {
  floating_tensor(infer, 0);
  return {floating_tensor(infer, 1)};
}

// The score of a sample's class is selected where the position along the classes equals the target.
// So neither the look-up nor its gradient needs a pass over the scores of its own.

/// Whether class_loss applies: the scores have the precision of the sums, and at least one class.
bool has_class_loss(const Type& scores, int64_t dim) {
  return (scores.dtype == DType::f32 || scores.dtype == DType::f64) &&
         scores.shape[static_cast<size_t>(dim)].lower_bound().value_or(0) > 0;
}

/// Whether there are enough samples for kernels.
bool has_samples_enough(const Type& scores, int64_t dim) {
  return has_rows_enough({scores.shape, {dim}});
}

int64_t class_dim(const Type& scores) { return scores.rank() == 1 ? 0 : 1; }
int64_t class_dim(const Expression& scores) { return class_dim(scores.type()); }

/// `values` at the element of each sample's class, 0 elsewhere.
Expression at_class(const Expression& scores, const Expression& target, int64_t dim,
                    const Expression& values) {
  const auto place = apply(op::position, {{"dim", dim}}, scores);
  return apply(op::where, apply(op::eq, place, target), values, 0.0);
}

std::vector<Type> infer_class_loss(const Infer& infer) {
  const Type& scores = floating_tensor(infer, 0);
  const int64_t dim = wrap_dim(infer, integer_attribute(infer.attributes, "dim"), scores.rank());
  Shape shape = scores.shape;
  shape[static_cast<size_t>(dim)] = 1;
  if (!(tensor_type(infer, 1) == Type::tensor(DType::i64, shape)))
    infer.fail(cat("scores ", scores, ", target ", infer.type(1)));
  const Type row = Type::tensor(scores.dtype, shape);
  return {row, row, row};
}

/// The decomposition of class_loss, for fusion.
std::vector<Value*> class_loss_in_parts(const Decompose& d) {
  const auto scores = in(d, 0), target = in(d, 1);
  const int64_t dim = integer_attribute(d.node.attributes, "dim");
  const auto maximum = apply(op::amax, {{"dim", Shape{dim}}, {"keepdim", true}}, scores);
  const auto shifted = scores - maximum;
  const auto total = sum_over(apply(op::exp, shifted), std::array{dim}, true);
  return {apply(op::pick, {{"dim", dim}}, scores, target) - maximum, maximum, total};
}

/// The gradient of class_loss. The maximum only keeps numbers small and needs none.
void class_loss_gradient(Vjp& g) {
  if (!g.needs(0)) return;
  const auto scores = in(g, 0);
  const int64_t dim = integer_attribute(g.node().attributes, "dim");
  if (g.dout(2) != nullptr) g.add(0, apply(op::exp, scores - out(g, 1)) * dout(g, 2));
  if (g.dout(0) != nullptr) g.add(0, at_class(scores, in(g, 1), dim, dout(g, 0)));
}

Attributes likelihood_attributes(const Node& node) {
  return {{"reduction", reduction_of(node.attributes)},
          {"ignore_index", *node.attributes.find("ignore_index")}};
}

Expression ignored_class(const Node& node) {
  return integer_attribute(node.attributes, "ignore_index");
}

void nll_gradient(Vjp& g, const OpDef& backward) {
  if (g.dout(0) == nullptr || !g.needs(0)) return;
  const auto scores = in(g, 0);
  const int64_t dim = class_dim(scores);
  if (in(g, 2).is_none() && has_samples_enough(scores.type(), dim)) {
    const int64_t reduction = reduction_of(g.node().attributes);
    const auto target = unsqueezed(in(g, 1), dim);
    Expression dy = dout(g, 0);
    if (reduction == none) dy = unsqueezed(dy, dim);
    if (reduction == mean) dy = dy / out(g, 1);
    const auto counted = apply(op::ne, target, ignored_class(g.node()));
    return g.add(0, at_class(scores, target, dim, apply(op::where, counted, -dy, 0.0)));
  }
  g.add(0, apply(backward, likelihood_attributes(g.node()), dout(g), in(g, 0), in(g, 1), in(g, 2),
                 out(g, 1)));
}

void nll_backward_gradient(Vjp& g, const OpDef& forward) {
  if (g.needs(0))
    g.add(0, apply(forward, likelihood_attributes(g.node()), dout(g), in(g, 2), in(g, 3)));
  if (g.needs(1)) g.add(1, zeros_of(in(g, 1)));
}

/// The negative log likelihood for any rank, by ATen's operators for ranks 2 and 4.
Expression likelihood(const Node& node, const Expression& x, const Expression& target,
                      const Expression& weight) {
  const Attributes attributes = likelihood_attributes(node);
  if (x.rank() <= 2) return apply(op::nll_loss_forward, attributes, x, target, weight);
  if (x.rank() == 4) return apply(op::nll_loss2d_forward, attributes, x, target, weight);
  const Dim batch = x.shape()[0], classes = x.shape()[1];
  const Shape inner(x.shape().begin() + 2, x.shape().end());
  const Dim count = element_count(inner);
  const auto loss =
      apply(op::nll_loss2d_forward, attributes, reshaped(x, {batch, classes, 1, count}),
            reshaped(target, {batch, 1, count}), weight);
  return loss.rank() == 0 ? loss : reshaped(loss, target.shape());
}

std::vector<Type> infer_any_nll(const Infer& infer) {
  refuse_deprecated(infer);
  const Type& input = floating_tensor(infer, 0);
  const Type& target = tensor_type(infer, 1);
  if (input.rank() < 1 || target.shape != target_shape(input.shape))
    infer.fail(cat("input ", input, ", target ", target));
  check_classes(infer, input, target);
  return {Type::tensor(input.dtype, reduced(reduction_of(infer.attributes), target.shape))};
}

std::vector<Value*> decompose_any_nll(const Decompose& d) {
  return {likelihood(d.node, in(d, 0), in(d, 1), in(d, 2))};
}

// ---- Cross entropy ----------------------------------------------------------------------------

bool is_probability_target(const Type& input, const Type& target) {
  return input.shape == target.shape && is_floating(target.dtype);
}

std::vector<Type> infer_cross_entropy(const Infer& infer) {
  refuse_deprecated(infer);
  const Type& input = floating_tensor(infer, 0);
  const Type& target = tensor_type(infer, 1);
  const auto smoothing = constant_number(infer.inputs[3]);
  if (!smoothing || !(*smoothing >= 0 && *smoothing <= 1))
    infer.fail("label smoothing must be known");
  if (input.rank() < 1) infer.fail(cat("input ", input));
  const int64_t reduction = reduction_of(infer.attributes);
  if (!is_probability_target(input, target)) {
    if (*smoothing > 0 && !has_class_loss(input, class_dim(input)))
      infer.fail(cat("label smoothing of ", input));
    return infer_any_nll(infer);
  }
  if (!infer.type(2).is_none() || target.dtype != input.dtype)
    infer.fail("weights of probabilities, or dtypes that differ");
  if (reduction == mean && input.rank() < 2) infer.fail("a mean without a batch");
  return {Type::tensor(input.dtype, reduced(reduction, target_shape(input.shape)))};
}

/// One number for each class, shaped to broadcast with the scores.
Expression beside(const Expression& scores, const Expression& classes, int64_t dim) {
  return expanded(along(classes, dim, scores.rank()), scores.shape());
}

/// The loss of each sample: minus the log probability of its class, with smoothing also of all
/// classes. The logarithms of all scores are never in memory.
Expression losses_of_samples(const Expression& x, const Expression& target,
                             const Expression& weight, double smoothing) {
  const int64_t dim = class_dim(x);
  const auto parts = apply_all(op::class_loss, {{"dim", dim}}, x, target);
  const auto logarithm = apply(op::log, parts[2]);
  Expression own = -(parts[0] - logarithm);
  if (!weight.is_none())
    own = own * apply(op::pick, {{"dim", dim}}, beside(x, weight, dim), target);
  if (smoothing == 0) return own;
  // Not written as a negation: common subexpression elimination would merge it with what class_loss
  // and its gradient compute of the scores, and the value would be stored.
  Expression all = parts[1] - x + logarithm;
  if (!weight.is_none()) all = all * along(weight, dim, x.rank());
  const auto classes = number(*x.builder(), x.shape()[static_cast<size_t>(dim)]);
  return own * (1 - smoothing) + sum_over(all, std::array{dim}, true) * (smoothing / classes);
}

Expression cross_entropy_of_classes(const Node& node, const Expression& x, const Expression& target,
                                    const Expression& weight, double smoothing) {
  const int64_t dim = class_dim(x), reduction = reduction_of(node.attributes);
  const auto place = unsqueezed(target, dim);
  const auto counted = apply(op::ne, target, ignored_class(node));
  const auto sample = squeezed(losses_of_samples(x, place, weight, smoothing), dim);
  const auto loss = apply(op::where, counted, sample, 0.0);
  const auto count = apply(op::count_classes,
                           {{"classes", to_attribute(x.shape()[static_cast<size_t>(dim)])},
                            {"ignore_index", *node.attributes.find("ignore_index")}},
                           target);
  if (reduction == none) return loss;
  if (reduction == total) return sum_all(loss);
  if (weight.is_none()) return sum_all(loss) / count;
  const auto own = squeezed(apply(op::pick, {{"dim", dim}}, beside(x, weight, dim), place), dim);
  const auto weights = sum_all(apply(op::where, counted, own, 0.0));
  const auto mean = sum_all(loss) / weights;
  // If no class has a weight, eager's mean is NaN, whatever smoothing adds.
  return smoothing == 0 ? mean : mean + weights * 0 / weights;
}

std::vector<Value*> decompose_cross_entropy(const Decompose& d) {
  const auto x = in(d, 0);
  const int64_t dim = class_dim(x);
  const double smoothing = *constant_number(d.inputs[3]);
  if (!is_probability_target(x.type(), d.inputs[1]->type) &&
      (smoothing > 0 || (has_class_loss(x.type(), dim) && has_samples_enough(x.type(), dim))))
    return {cross_entropy_of_classes(d.node, x, in(d, 1), in(d, 2), smoothing)};
  const auto scores = apply(op::log_softmax, {{"dim", dim}}, x);
  const auto target = in(d, 1);
  if (!is_probability_target(x.type(), target.type()))
    return {likelihood(d.node, scores, target, in(d, 2))};
  Expression expected = target;
  if (smoothing > 0)
    expected = target * (1 - smoothing) +
               smoothing / number(d.builder, x.shape()[static_cast<size_t>(dim)]);
  const auto loss = -(scores * expected);
  const int64_t reduction = reduction_of(d.node.attributes);
  if (reduction == none) return {sum_over(loss, std::array{dim}, false)};
  if (reduction == total) return {sum_all(loss)};
  const Dim samples = element_count(target_shape(x.shape()));
  return {sum_all(loss) / number(d.builder, samples)};
}

}  // namespace

constinit const OpDef op::squared_errors{
    .name = "squared_errors",
    .doc = "The squared difference of each two elements: mse_loss before its reduction.",
    .schema = "(Tensor self, Tensor target, int reduction) -> Tensor",
    .aten = "mse_loss",
    .traits = Trait::pure | Trait::elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = infer_errors,
    .vjp =
        [](Vjp& g) {
          error_gradients(g, [&](const Expression& error) { return dout(g) * (2 * error); });
        },
    .scalar = [](ScalarCode& k) -> Scalar {
      const Element error = rounded(element(k, 0) - element(k, 1));
      return error * error;
    },
};

constinit const OpDef op::smooth_errors{
    .name = "smooth_errors",
    .doc = "smooth_l1_loss before its reduction.",
    .schema = "(Tensor self, Tensor target, int reduction, float beta) -> Tensor",
    .aten = "smooth_l1_loss",
    .traits = Trait::pure | Trait::elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = infer_errors,
    .vjp =
        [](Vjp& g) {
          error_gradients(g, [&](const Expression& error) {
            return bounded_slope(g, error, dout(g), [&](const Expression& small) {
              return small * dout(g) / in(g, 2);
            });
          });
        },
    .scalar = smooth_error,
};

constinit const OpDef op::huber_errors{
    .name = "huber_errors",
    .doc = "huber_loss before its reduction.",
    .schema = "(Tensor self, Tensor target, int reduction, float delta) -> Tensor",
    .aten = "huber_loss",
    .traits = Trait::pure | Trait::elementwise,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .infer = infer_errors,
    .vjp =
        [](Vjp& g) {
          error_gradients(g, [&](const Expression& error) {
            return bounded_slope(g, error, dout(g) * in(g, 2),
                                 [&](const Expression& small) { return small * dout(g); });
          });
        },
    .scalar = huber_error,
};

constinit const OpDef op::mse_loss{
    .name = "mse_loss",
    .doc = "Squared differences.",
    .schema = "(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    .python = "_C._nn.mse_loss",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::full,
    .infer = infer_pair,
    .decompose = decompose_squared,
};

constinit const OpDef op::functional_mse_loss{
    .name = "functional_mse_loss",
    .doc = "mse_loss with nn.functional's parameters.",
    .schema =
        "(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, "
        "str reduction=\"mean\", Tensor? weight=None) -> Tensor",
    .python = "nn.functional.mse_loss",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::full,
    .infer = infer_pair_without_weight,
    .decompose = decompose_squared,
};

constinit const OpDef op::l1_loss{
    .name = "l1_loss",
    .doc = "Absolute differences.",
    .schema = "(Tensor self, Tensor target, int reduction=Mean) -> Tensor",
    .python = "_C._nn.l1_loss",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::full,
    .infer = infer_pair,
    .decompose = decompose_absolute,
};

constinit const OpDef op::functional_l1_loss{
    .name = "functional_l1_loss",
    .doc = "l1_loss with nn.functional's parameters.",
    .schema =
        "(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, "
        "str reduction=\"mean\", Tensor? weight=None) -> Tensor",
    .python = "nn.functional.l1_loss",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::full,
    .infer = infer_pair_without_weight,
    .decompose = decompose_absolute,
};

constinit const OpDef op::smooth_l1_loss{
    .name = "smooth_l1_loss",
    .doc = "Absolute differences, squared where they are below beta.",
    .schema = "(Tensor self, Tensor target, int reduction=Mean, float beta=1.0) -> Tensor",
    .python = "_C._nn.smooth_l1_loss",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::full,
    .infer = [](const Infer& infer) { return infer_known_third(infer, 2); },
    .decompose = decompose_smooth,
};

constinit const OpDef op::functional_smooth_l1_loss{
    .name = "functional_smooth_l1_loss",
    .doc = "smooth_l1_loss with nn.functional's parameters.",
    .schema =
        "(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, "
        "str reduction=\"mean\", float beta=1.0) -> Tensor",
    .python = "nn.functional.smooth_l1_loss",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::full,
    .infer = [](const Infer& infer) { return infer_known_third(infer, 2); },
    .decompose = decompose_smooth,
};

constinit const OpDef op::huber_loss{
    .name = "huber_loss",
    .doc = "Squared differences, linear from delta on.",
    .schema = "(Tensor self, Tensor target, int reduction=Mean, float delta=1.0) -> Tensor",
    .python = "_C._nn.huber_loss",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::full,
    .infer = [](const Infer& infer) { return infer_known_third(infer, 2); },
    .decompose = decompose_huber,
};

constinit const OpDef op::functional_huber_loss{
    .name = "functional_huber_loss",
    .doc = "huber_loss with nn.functional's parameters.",
    .schema =
        "(Tensor input, Tensor target, str reduction=\"mean\", float delta=1.0, "
        "Tensor? weight=None) -> Tensor",
    .python = "nn.functional.huber_loss",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::full,
    .infer =
        [](const Infer& infer) {
          if (!infer.type(3).is_none()) infer.fail("a weight");
          return infer_known_third(infer, 2);
        },
    .decompose = decompose_huber,
};

constinit const OpDef op::kl_div{
    .name = "kl_div",
    .doc = "Kullback-Leibler divergence of log probabilities from a target.",
    .schema =
        "(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False) -> Tensor",
    .python = "kl_div",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::full,
    .infer = infer_pair,
    .decompose = [](const Decompose& d) -> std::vector<Value*> {
      return {reduce(divergence(d), reduction_of(d.node.attributes))};
    },
};

constinit const OpDef op::functional_kl_div{
    .name = "functional_kl_div",
    .doc = "kl_div with nn.functional's parameters.",
    .schema =
        "(Tensor input, Tensor target, bool? size_average=None, bool? reduce=None, "
        "str reduction=\"mean\", bool log_target=False) -> Tensor",
    .python = "nn.functional.kl_div",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::full,
    .infer = infer_functional_divergence,
    .decompose = decompose_functional_divergence,
};

constinit const OpDef op::binary_cross_entropy{
    .name = "binary_cross_entropy",
    .doc = "Cross entropy of probabilities of two classes; the run checks that they are ones.",
    .schema = "(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> Tensor",
    .aten = "binary_cross_entropy",
    .python = "_C._nn.binary_cross_entropy",
    .layout = Layout::differs,
    .raises = Raises::outside_range,
    .saves = Saves::values,
    .constants = "weight",
    .autocast = Autocast::full,
    .infer = infer_binary,
    .vjp = binary_gradient,
};

constinit const OpDef op::functional_binary_cross_entropy{
    .name = "functional_binary_cross_entropy",
    .doc = "binary_cross_entropy with nn.functional's parameters.",
    .schema =
        "(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, "
        "bool? reduce=None, str reduction=\"mean\") -> Tensor",
    .python = "nn.functional.binary_cross_entropy",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .constants = "weight",
    .autocast = Autocast::full,
    .infer = infer_functional_binary,
    .decompose = decompose_functional_binary,
};

constinit const OpDef op::binary_cross_entropy_with_logits{
    .name = "binary_cross_entropy_with_logits",
    .doc = "Cross entropy of two classes, given by logits.",
    .schema =
        "(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
        "int reduction=Mean) -> Tensor",
    .python = "binary_cross_entropy_with_logits",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .constants = "weight pos_weight",
    .autocast = Autocast::full,
    .infer = infer_logits,
    .decompose = decompose_logits,
};

constinit const OpDef op::functional_binary_cross_entropy_with_logits{
    .name = "functional_binary_cross_entropy_with_logits",
    .doc = "binary_cross_entropy_with_logits with nn.functional's parameters.",
    .schema =
        "(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, "
        "bool? reduce=None, str reduction=\"mean\", Tensor? pos_weight=None) -> Tensor",
    .python = "nn.functional.binary_cross_entropy_with_logits",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .constants = "weight pos_weight",
    .autocast = Autocast::full,
    .infer = infer_logits,
    .decompose = decompose_logits,
};

constinit const OpDef op::nll_loss_forward{
    .name = "nll_loss_forward",
    .doc = "Minus the weighted score of each sample's class; and the sum of weights.",
    .schema =
        "(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) -> "
        "(Tensor output, Tensor total_weight)",
    .aten = "nll_loss_forward",
    .raises = Raises::outside_range,
    .saves = Saves::values,
    .infer = infer_nll<false>,
    .vjp = [](Vjp& g) { nll_gradient(g, op::nll_loss_backward); },
    .rows = for_rows::nll_loss_forward,
};

constinit const OpDef op::nll_loss_backward{
    .name = "nll_loss_backward",
    .doc = "Gradient of nll_loss_forward for the scores.",
    .schema =
        "(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, "
        "int ignore_index, Tensor total_weight) -> Tensor",
    .aten = "nll_loss_backward",
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_nll_backward,
    .vjp = [](Vjp& g) { nll_backward_gradient(g, op::nll_loss_forward); },
    .rows = for_rows::nll_loss_backward,
};

constinit const OpDef op::nll_loss2d_forward{
    .name = "nll_loss2d_forward",
    .doc = "nll_loss_forward for planes of samples.",
    .schema =
        "(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) -> "
        "(Tensor output, Tensor total_weight)",
    .aten = "nll_loss2d_forward",
    .raises = Raises::outside_range,
    .saves = Saves::values,
    .infer = infer_nll<true>,
    .vjp = [](Vjp& g) { nll_gradient(g, op::nll_loss2d_backward); },
};

constinit const OpDef op::nll_loss2d_backward{
    .name = "nll_loss2d_backward",
    .doc = "Gradient of nll_loss2d_forward for the scores.",
    .schema =
        "(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, "
        "int ignore_index, Tensor total_weight) -> Tensor",
    .aten = "nll_loss2d_backward",
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_nll_backward,
    .vjp = [](Vjp& g) { nll_backward_gradient(g, op::nll_loss2d_forward); },
};

constinit const OpDef op::class_loss{
    .name = "class_loss",
    .doc =
        "What the losses of samples need of their scores, the largest of which keeps numbers "
        "small. "
        "Results: the score of the sample's class less the largest; the largest; the sum of the "
        "powers of all scores less the largest.",
    .schema = "(Tensor self, Tensor target, *, int dim) -> (Tensor, Tensor, Tensor)",
    .computed_by = ComputedBy::loops,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .reduces = Reduces::one,
    .rounds = Rounds::within,
    .infer = infer_class_loss,
    .vjp = class_loss_gradient,
    .decompose = class_loss_in_parts,
    .rows = for_rows::along_dim_of_all,
};

constinit const OpDef op::count_classes{
    .name = "count_classes",
    .doc = "How many elements are classes, not ignore_index; ends the run if one is neither.",
    .schema = "(Tensor target, *, int classes, int ignore_index) -> Tensor",
    .traits = Trait::may_fail | Trait::no_gradient,
    .computed_by = ComputedBy::loops,
    .raises = Raises::not_for_contents,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      if (tensor_type(infer, 0).dtype != DType::i64)
        infer.fail(janus::cat("target ", infer.type(0)));
      return {Type::tensor(DType::i64, {})};
    },
    .rows = for_rows::count_classes,
};

constinit const OpDef op::nll_loss{
    .name = "nll_loss",
    .doc = "Minus the weighted score of each sample's class.",
    .schema =
        "(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, "
        "int ignore_index=-100) -> Tensor",
    .python = "_C._nn.nll_loss_nd _C._nn.nll_loss _C._nn.nll_loss2d",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .constants = "weight",
    .autocast = Autocast::full,
    .infer = infer_any_nll,
    .decompose = decompose_any_nll,
};

constinit const OpDef op::functional_nll_loss{
    .name = "functional_nll_loss",
    .doc = "nll_loss with nn.functional's parameters.",
    .schema =
        "(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, "
        "int ignore_index=-100, bool? reduce=None, str reduction=\"mean\") -> Tensor",
    .python = "nn.functional.nll_loss",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .constants = "weight",
    .autocast = Autocast::full,
    .infer = infer_any_nll,
    .decompose = decompose_any_nll,
};

constinit const OpDef op::cross_entropy_loss{
    .name = "cross_entropy_loss",
    .doc = "Cross entropy of scores and classes (or probabilities).",
    .schema =
        "(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, "
        "int ignore_index=-100, float label_smoothing=0.0) -> Tensor",
    .python = "_C._nn.cross_entropy_loss",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .constants = "weight",
    .autocast = Autocast::full,
    .infer = infer_cross_entropy,
    .decompose = decompose_cross_entropy,
};

constinit const OpDef op::functional_cross_entropy{
    .name = "functional_cross_entropy",
    .doc = "cross_entropy_loss with nn.functional's parameters.",
    .schema =
        "(Tensor input, Tensor target, Tensor? weight=None, bool? size_average=None, "
        "int ignore_index=-100, bool? reduce=None, str reduction=\"mean\", "
        "float label_smoothing=0.0) -> Tensor",
    .python = "nn.functional.cross_entropy",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .constants = "weight",
    .autocast = Autocast::full,
    .infer = infer_cross_entropy,
    .decompose = decompose_cross_entropy,
};

}  // namespace janus
