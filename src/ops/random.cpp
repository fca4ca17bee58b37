// Operators that draw from torch's generator. ATen runs them, in program order, so that the numbers
// and the state of the generator are those of eager. Dropout decomposes exactly as ATen's on the
// CPU.
#include <array>

#include "ops/expression.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

constexpr Trait draw = Trait::random | Trait::no_gradient;

DType floating_dtype(const Infer& infer, DType otherwise) {
  const DType dtype = dtype_attribute(infer.attributes).value_or(otherwise);
  if (!is_floating(dtype)) infer.fail("the result is not floating");
  return dtype;
}

Shape drawn_size(const Infer& infer) {
  Shape size = list_attribute(infer.attributes, "size");
  for (const Dim& dim : size)
    if (dim.lower_bound().value_or(-1) < 0) infer.fail(cat("size ", dim));
  return size;
}

std::vector<Type> infer_sized(const Infer& infer) {
  return {Type::tensor(floating_dtype(infer, default_dtype()), drawn_size(infer))};
}

std::vector<Type> infer_like(const Infer& infer) {
  const Type& type = tensor_type(infer, 0);
  return {Type::tensor(floating_dtype(infer, type.dtype), type.shape)};
}

template <bool has_low>
std::vector<Type> infer_randint(const Infer& infer) {
  const Dim low = has_low ? dim_attribute(infer.attributes, "low") : Dim(0);
  const Dim high = dim_attribute(infer.attributes, "high");
  if (low.is_constant() && high.is_constant() && low.value() >= high.value())
    infer.fail(cat("no integer in [", low, ", ", high, ")"));
  const DType dtype = dtype_attribute(infer.attributes).value_or(DType::i64);
  if (is_complex(dtype)) infer.fail("complex result");
  return {Type::tensor(dtype, drawn_size(infer))};
}

/// The gradient rule of in-place draws: gradients stop there.
void no_gradient_through(Vjp& g) {
  if (g.needs(0)) g.add(0, zeros_of(in(g, 0)));
}

double probability(const Value* operand) {
  const auto p = constant_number(operand);
  if (!p) throw TypeError("dropout: the probability must be known");
  if (!(*p >= 0 && *p <= 1)) throw TypeError(cat("dropout: probability ", *p));
  return *p;
}

std::vector<Type> infer_dropout(const Infer& infer) {
  probability(infer.inputs[1]);
  return {floating_tensor(infer, 0)};
}

bool is_training(const Node& node) {
  return flag_attribute(node.attributes, node.attributes.has("train") ? "train" : "training");
}

/// Dropout with a mask of that shape.
std::vector<Value*> dropped(const Decompose& d, const Shape& shape) {
  const auto x = in(d, 0);
  const double p = probability(d.inputs[1]);
  const Type type = Type::tensor(x.dtype(), shape);
  if (p == 0 || !is_training(d.node) || element_count(x.shape()).is(0)) return {x};
  if (p == 1) return {x * zeros(d.builder, Type::tensor(x.dtype(), {}))};
  const bool whole = shape == x.shape();
  const auto like = whole ? apply(op::detach, x) : zeros(d.builder, type);
  const auto mask = apply(op::bernoulli_p, like, 1 - p) / (1 - p);
  return {x * mask};
}

std::vector<Value*> decompose_dropout(const Decompose& d) { return dropped(d, in(d, 0).shape()); }

std::vector<Value*> decompose_feature_dropout(const Decompose& d) {
  const Shape& shape = in(d, 0).shape();
  Shape mask(shape.size(), Dim(1));
  mask[0] = shape[0];
  mask[1] = shape[1];
  return dropped(d, mask);
}

}  // namespace

constinit const OpDef op::rand{
    .name = "rand",
    .doc = "Numbers from [0, 1).",
    .schema =
        "(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .aten = "rand",
    .python = "rand",
    .traits = draw,
    .layout = Layout::contiguous,
    .raises = Raises::not_for_contents,
    .draws = Draws::elements,
    .infer = infer_sized,
};

constinit const OpDef op::randn{
    .name = "randn",
    .doc = "Numbers from the standard normal distribution.",
    .schema =
        "(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .aten = "randn",
    .python = "randn",
    .traits = draw,
    .layout = Layout::contiguous,
    .raises = Raises::not_for_contents,
    .draws = Draws::elements,
    .infer = infer_sized,
};

constinit const OpDef op::rand_like{
    .name = "rand_like",
    .doc = "Numbers from [0, 1) in the shape and dtype of a tensor.",
    .schema =
        "(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .aten = "rand_like",
    .python = "rand_like",
    .traits = draw,
    .layout = Layout::operands,
    .raises = Raises::not_for_contents,
    .draws = Draws::memory,
    .infer = infer_like,
};

constinit const OpDef op::randn_like{
    .name = "randn_like",
    .doc = "Numbers from the standard normal distribution in the shape and dtype of a tensor.",
    .schema =
        "(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    .aten = "randn_like",
    .python = "randn_like",
    .traits = draw,
    .layout = Layout::operands,
    .raises = Raises::not_for_contents,
    .draws = Draws::elements,
    .infer = infer_like,
};

constinit const OpDef op::randint{
    .name = "randint",
    .doc = "Integers from [0, high).",
    .schema =
        "(int high, int[] size, *, ScalarType? dtype=long, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .aten = "randint",
    .python = "randint",
    .traits = draw,
    .layout = Layout::contiguous,
    .raises = Raises::not_for_contents,
    .draws = Draws::elements,
    .infer = infer_randint<false>,
};

constinit const OpDef op::randint_low{
    .name = "randint_low",
    .doc = "Integers from [low, high).",
    .schema =
        "(int low, int high, int[] size, *, ScalarType? dtype=long, Layout? layout=None, "
        "Device? device=None, bool? pin_memory=None) -> Tensor",
    .aten = "randint.low",
    .python = "randint",
    .traits = draw,
    .layout = Layout::contiguous,
    .raises = Raises::not_for_contents,
    .draws = Draws::elements,
    .infer = infer_randint<true>,
};

constinit const OpDef op::randperm{
    .name = "randperm",
    .doc = "The integers below n in some order.",
    .schema =
        "(int n, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, "
        "bool? pin_memory=None) -> Tensor",
    .aten = "randperm",
    .python = "randperm",
    .traits = draw,
    .layout = Layout::contiguous,
    .raises = Raises::not_for_contents,
    .draws = Draws::elements,
    .infer = [](const Infer& infer) -> std::vector<Type> {
      const Dim n = dim_attribute(infer.attributes, "n");
      if (n.lower_bound().value_or(-1) < 0) infer.fail(janus::cat("size ", n));
      return {Type::tensor(dtype_attribute(infer.attributes).value_or(DType::i64), {n})};
    },
};

constinit const OpDef op::bernoulli{
    .name = "bernoulli",
    .doc = "1 with the probability that each element gives, else 0.",
    .schema = "(Tensor self, *, Generator? generator=None) -> Tensor",
    .aten = "bernoulli",
    .python = "bernoulli",
    .traits = Trait::random,
    .layout = Layout::differs,
    .raises = Raises::outside_range,
    .saves = Saves::values,
    .draws = Draws::elements,
    .infer = same_as_floating,
    .vjp = no_gradient_through,
};

constinit const OpDef op::bernoulli_p{
    .name = "bernoulli_p",
    .doc = "1 with probability p, else 0, in the shape and dtype of a tensor.",
    .schema = "(Tensor self, float p=0.5, *, Generator? generator=None) -> Tensor",
    .aten = "bernoulli.p",
    .python = "Tensor.bernoulli_",
    .traits = Trait::random,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .draws = Draws::elements,
    .infer =
        [](const Infer& infer) {
          require_number(infer, 1);
          return same_as_first(infer);
        },
    .vjp = no_gradient_through,
};

constinit const OpDef op::uniform{
    .name = "uniform",
    .doc = "Numbers from [from, to) in the shape and dtype of a tensor.",
    .schema = "(Tensor self, float from=0.0, float to=1.0, *, Generator? generator=None) -> Tensor",
    .aten = "uniform",
    .python = "Tensor.uniform_",
    .traits = Trait::random,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .draws = Draws::elements,
    .infer = same_as_floating,
    .vjp = no_gradient_through,
};

constinit const OpDef op::normal{
    .name = "normal",
    .doc = "Numbers from a normal distribution in the shape and dtype of a tensor.",
    .schema =
        "(Tensor self, float mean=0.0, float std=1.0, *, Generator? generator=None) -> Tensor",
    .aten = "normal_functional",
    .python = "Tensor.normal_",
    .traits = Trait::random,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .draws = Draws::elements,
    .infer = same_as_floating,
    .vjp = no_gradient_through,
};

constinit const OpDef op::exponential{
    .name = "exponential",
    .doc = "Numbers from an exponential distribution in the shape and dtype of a tensor.",
    .schema = "(Tensor self, float lambd=1.0, *, Generator? generator=None) -> Tensor",
    .aten = "exponential",
    .python = "Tensor.exponential_",
    .traits = Trait::random,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .draws = Draws::elements,
    .infer = same_as_floating,
    .vjp = no_gradient_through,
};

constinit const OpDef op::dropout{
    .name = "dropout",
    .doc = "In training, zeros with probability p and the rest scaled up; else the input itself.",
    .schema = "(Tensor input, float p, bool train) -> Tensor",
    .python = "dropout _VF.dropout",
    .traits = Trait::random | Trait::composite,
    .layout = Layout::operands,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .draws = Draws::memory,
    .has_plain_gradient = true,
    .infer = infer_dropout,
    .decompose = decompose_dropout,
};

constinit const OpDef op::functional_dropout{
    .name = "functional_dropout",
    .doc = "dropout with nn.functional's parameters.",
    .schema = "(Tensor input, float p=0.5, bool training=True) -> Tensor",
    .python = "nn.functional.dropout",
    .traits = Trait::random | Trait::composite,
    .layout = Layout::operands,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .draws = Draws::memory,
    .has_plain_gradient = true,
    .infer = infer_dropout,
    .decompose = decompose_dropout,
};

constinit const OpDef op::feature_dropout{
    .name = "feature_dropout",
    .doc = "dropout of whole channels.",
    .schema = "(Tensor input, float p, bool train) -> Tensor",
    .python = "feature_dropout _VF.feature_dropout",
    .traits = Trait::random | Trait::composite,
    .layout = Layout::operands,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .draws = Draws::channels,
    .has_plain_gradient = true,
    .infer =
        [](const Infer& infer) {
          if (tensor_type(infer, 0).rank() < 2) infer.fail(janus::cat("input ", infer.type(0)));
          return infer_dropout(infer);
        },
    .decompose = decompose_feature_dropout,
};

}  // namespace janus
