// Convolutions of one to three dimensions and their transposes. All become the operator
// `convolution`. Its gradient is `convolution_backward`, whose own gradient consists of these two
// again, since a convolution is linear in each operand.
#include <array>

#include "ops/expression.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

struct Geometry {
  Shape stride, padding, dilation, output_padding;
  bool is_transposed = false;
  Dim groups;
};

Geometry geometry_of(const Attributes& attributes, size_t dimensions) {
  return {.stride = list_attribute(attributes, "stride", dimensions),
          .padding = list_attribute(attributes, "padding", dimensions),
          .dilation = list_attribute(attributes, "dilation", dimensions),
          .output_padding = list_attribute(attributes, "output_padding", dimensions),
          .is_transposed = flag_attribute(attributes, "transposed"),
          .groups = dim_attribute(attributes, "groups")};
}

Attributes to_attributes(const Geometry& geometry) {
  return {{"stride", geometry.stride},
          {"padding", geometry.padding},
          {"dilation", geometry.dilation},
          {"transposed", geometry.is_transposed},
          {"output_padding", geometry.output_padding},
          {"groups", to_attribute(geometry.groups)}};
}

/// Size of one spatial dimension of the result.
Dim output_size(const Infer& infer, const Geometry& geometry, size_t i, const Dim& input,
                const Dim& kernel) {
  const Dim& stride = geometry.stride[i];
  if (!stride.is_constant() || stride.value() < 1) infer.fail(cat("stride ", stride));
  const Dim reach = geometry.dilation[i] * (kernel - 1);
  if (geometry.is_transposed)
    return (input - 1) * stride - 2 * geometry.padding[i] + reach + geometry.output_padding[i] + 1;
  return floor_divide(input + 2 * geometry.padding[i] - reach - 1, stride) + 1;
}

/// Fails if the size is known to be out of range. Symbolic sizes are left to the run.
void require_not_empty(const Infer& infer, const Dim& size) {
  if (size.is_constant() && size.value() < 1) infer.fail(cat("the result would have size ", size));
}

Shape convolved(const Infer& infer, const Shape& input, const Shape& weight,
                const Geometry& geometry) {
  const Dim channels = geometry.is_transposed ? weight[0] : weight[1] * geometry.groups;
  require_equal(infer, input[1], channels, "channels of input and weight differ");
  const Dim outputs = geometry.is_transposed ? weight[1] * geometry.groups : weight[0];
  Shape shape{input[0], outputs};
  for (size_t i = 0; i + 2 < input.size(); ++i) {
    shape.push_back(output_size(infer, geometry, i, input[i + 2], weight[i + 2]));
    require_not_empty(infer, shape.back());
  }
  return shape;
}

std::vector<Type> infer_convolution(const Infer& infer) {
  const Type& input = floating_tensor(infer, 0);
  const Type& weight = floating_tensor(infer, 1);
  if (input.rank() < 3 || input.rank() > 5 || weight.rank() != input.rank())
    infer.fail(cat("input ", input, ", weight ", weight));
  if (input.dtype != weight.dtype) infer.fail("input and weight differ in dtype");
  const auto geometry = geometry_of(infer.attributes, input.shape.size() - 2);
  const Shape shape = convolved(infer, input.shape, weight.shape, geometry);
  if (!infer.type(2).is_none()) {
    const Type& bias = tensor_of_rank(infer, 2, 1);
    if (bias.dtype != input.dtype) infer.fail(cat("bias is ", bias));
    require_equal(infer, bias.shape[0], shape[1], "bias and weight differ");
  }
  return {Type::tensor(input.dtype, shape)};
}

std::vector<Type> infer_backward(const Infer& infer) {
  const Type& gradient = floating_tensor(infer, 0);
  const auto mask = mask_attribute(infer.attributes, "output_mask");
  if (mask.size() != 3 || gradient.rank() < 2) infer.fail("malformed mask or gradient");
  const Type types[] = {floating_tensor(infer, 1), floating_tensor(infer, 2),
                        Type::tensor(gradient.dtype, {gradient.shape[1]})};
  std::vector<Type> results;
  for (size_t i = 0; i < 3; ++i) results.push_back(mask[i] ? types[i] : Type::none());
  return results;
}

Expression convolve(const Node& node, const Expression& input, const Expression& weight,
                    const Expression& bias) {
  const size_t dimensions = input.shape().size() - 2;
  return apply(op::convolution, to_attributes(geometry_of(node.attributes, dimensions)), input,
               weight, bias);
}

/// The wanted gradients of the convolution that `node` is, or is the backward of.
std::vector<Expression> gradients(const Node& node, const Expression& dy, const Expression& input,
                                  const Expression& weight, std::vector<bool> wanted) {
  Attributes attributes = to_attributes(geometry_of(node.attributes, input.shape().size() - 2));
  attributes.set("bias_sizes", wanted[2] ? AttributeValue(Shape{dy.shape()[1]}) : None{});
  attributes.set("output_mask", std::move(wanted));
  return apply_all(op::convolution_backward, std::move(attributes), dy, input, weight);
}

void convolution_gradient(Vjp& g) {
  const std::vector<bool> wanted{g.needs(0), g.needs(1), g.needs(2)};
  const auto results = gradients(g.node(), dout(g), in(g, 0), in(g, 1), wanted);
  for (size_t i = 0; i < 3; ++i)
    if (wanted[i]) g.add(i, results[i]);
}

/// The gradient of dI = A(dO, W), dW = B(dO, I), db = sum(dO), with cotangents u, v, s of the
/// three.
void backward_gradient(Vjp& g) {
  const Expression none(g.builder(), g.builder().none());
  const auto dy = in(g, 0), input = in(g, 1), weight = in(g, 2);
  if (g.dout(0) != nullptr) {
    const auto u = dout(g, 0);
    if (g.needs(0)) g.add(0, convolve(g.node(), u, weight, none));
    if (g.needs(2)) g.add(2, gradients(g.node(), dy, u, weight, {false, true, false})[1]);
  }
  if (g.dout(1) != nullptr) {
    const auto v = dout(g, 1);
    if (g.needs(0)) g.add(0, convolve(g.node(), input, v, none));
    if (g.needs(1)) g.add(1, gradients(g.node(), dy, input, v, {true, false, false})[0]);
  }
  if (g.dout(2) != nullptr && g.needs(0))
    g.add(0, expanded(along(dout(g, 2), 1, dy.rank()), dy.shape()));
}

/// The padding that keeps the size; it must be equal on both sides.
Shape same_padding(const Infer& infer, const Shape& weight, const Shape& stride,
                   const Shape& dilation) {
  Shape padding;
  for (size_t i = 0; i + 2 < weight.size(); ++i) {
    const Dim total = dilation[i] * (weight[i + 2] - 1);
    if (!stride[i].is(1)) infer.fail("padding \"same\" needs stride 1");
    if (!total.is_constant() || total.value() % 2 != 0)
      infer.fail("padding \"same\" that differs on the two sides");
    padding.push_back(Dim(total.value() / 2));
  }
  return padding;
}

Geometry user_geometry(const Infer& infer, size_t dimensions) {
  const Attributes& attributes = infer.attributes;
  Geometry geometry{.stride = list_attribute(attributes, "stride", dimensions),
                    .padding = {},
                    .dilation = list_attribute(attributes, "dilation", dimensions),
                    .output_padding = Shape(dimensions, Dim(0)),
                    .is_transposed = attributes.has("output_padding"),
                    .groups = dim_attribute(attributes, "groups")};
  if (geometry.is_transposed)
    geometry.output_padding = list_attribute(attributes, "output_padding", dimensions);
  const auto* named = std::get_if<std::string>(attributes.find("padding"));
  if (named == nullptr) {
    geometry.padding = list_attribute(attributes, "padding", dimensions);
  } else if (*named == "same") {
    geometry.padding = same_padding(infer, infer.type(1).shape, geometry.stride, geometry.dilation);
  } else if (*named == "valid") {
    geometry.padding = Shape(dimensions, Dim(0));
  } else {
    infer.fail(cat("unknown padding ", *named));
  }
  return geometry;
}

/// The rule of a convolution whose input may lack the batch dimension.
template <size_t dimensions>
std::vector<Type> infer_user(const Infer& infer) {
  const Type& input = floating_tensor(infer, 0);
  const Type& weight = floating_tensor(infer, 1);
  if (weight.shape.size() != dimensions + 2 || input.dtype != weight.dtype)
    infer.fail(cat("input ", input, ", weight ", weight));
  if (!infer.type(2).is_none() && tensor_of_rank(infer, 2, 1).dtype != input.dtype)
    infer.fail(cat("bias is ", infer.type(2)));
  const bool batched = input.shape.size() == dimensions + 2;
  if (!batched && input.shape.size() != dimensions + 1) infer.fail(cat("input ", input));
  Shape shape = input.shape;
  if (!batched) shape.insert(shape.begin(), Dim(1));
  shape = convolved(infer, shape, weight.shape, user_geometry(infer, dimensions));
  if (!infer.type(2).is_none())
    require_equal(infer, infer.type(2).shape[0], shape[1], "bias and weight differ");
  if (!batched) shape.erase(shape.begin());
  return {Type::tensor(input.dtype, shape)};
}

template <size_t dimensions>
std::vector<Value*> decompose_user(const Decompose& d) {
  const Infer infer{
      .op = *d.node.op, .inputs = d.inputs, .attributes = d.node.attributes, .blocks = {}};
  const auto geometry = user_geometry(infer, dimensions);
  const auto input = in(d, 0);
  const bool batched = input.shape().size() == dimensions + 2;
  const auto result = apply(op::convolution, to_attributes(geometry),
                            batched ? input : unsqueezed(input, 0), in(d, 1), in(d, 2));
  return {batched ? result : squeezed(result, 0)};
}

}  // namespace

constinit const OpDef op::convolution{
    .name = "convolution",
    .doc = "Any convolution of a batch: plain or transposed, grouped, of 1 to 3 dimensions.",
    .schema =
        "(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, "
        "bool transposed, int[] output_padding, int groups) -> Tensor",
    .aten = "convolution",
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .images = {.operands = 0b1, .results = 0b1},
    .infer = infer_convolution,
    .vjp = convolution_gradient,
};

constinit const OpDef op::convolution_backward{
    .name = "convolution_backward",
    .doc = "Gradients of a convolution for input, weight and bias; none where the mask says so.",
    .schema =
        "(Tensor grad_output, Tensor input, Tensor weight, int[]? bias_sizes, int[] stride, "
        "int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups, "
        "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    .aten = "convolution_backward",
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .images = {.operands = 0b11, .results = 0b1},
    .infer = infer_backward,
    .vjp = backward_gradient,
};

constinit const OpDef op::conv1d{
    .name = "conv1d",
    .doc = "Convolution over 1 dimension.",
    .schema =
        "(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, "
        "int[1] dilation=1, int groups=1) -> Tensor",
    .python = "conv1d nn.functional.conv1d",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::lower,
    .infer = infer_user<1>,
    .decompose = decompose_user<1>,
};

constinit const OpDef op::conv1d_padding{
    .name = "conv1d_padding",
    .doc = "conv1d with padding \"valid\" or \"same\".",
    .schema =
        "(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, str padding=\"valid\", "
        "int[1] dilation=1, int groups=1) -> Tensor",
    .python = "conv1d nn.functional.conv1d",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::lower,
    .infer = infer_user<1>,
    .decompose = decompose_user<1>,
};

constinit const OpDef op::conv_transpose1d{
    .name = "conv_transpose1d",
    .doc = "Transposed convolution over 1 dimension.",
    .schema =
        "(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] padding=0, "
        "int[1] output_padding=0, int groups=1, int[1] dilation=1) -> Tensor",
    .python = "conv_transpose1d nn.functional.conv_transpose1d",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::lower,
    .infer = infer_user<1>,
    .decompose = decompose_user<1>,
};

constinit const OpDef op::conv2d{
    .name = "conv2d",
    .doc = "Convolution over 2 dimensions.",
    .schema =
        "(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, "
        "int[2] dilation=1, int groups=1) -> Tensor",
    .python = "conv2d nn.functional.conv2d",
    .traits = composite,
    .layout = Layout::filtered_image,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::lower,
    .infer = infer_user<2>,
    .decompose = decompose_user<2>,
};

constinit const OpDef op::conv2d_padding{
    .name = "conv2d_padding",
    .doc = "conv2d with padding \"valid\" or \"same\".",
    .schema =
        "(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, str padding=\"valid\", "
        "int[2] dilation=1, int groups=1) -> Tensor",
    .python = "conv2d nn.functional.conv2d",
    .traits = composite,
    .layout = Layout::filtered_image,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::lower,
    .infer = infer_user<2>,
    .decompose = decompose_user<2>,
};

constinit const OpDef op::conv_transpose2d{
    .name = "conv_transpose2d",
    .doc = "Transposed convolution over 2 dimensions.",
    .schema =
        "(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, "
        "int[2] output_padding=0, int groups=1, int[2] dilation=1) -> Tensor",
    .python = "conv_transpose2d nn.functional.conv_transpose2d",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::lower,
    .infer = infer_user<2>,
    .decompose = decompose_user<2>,
};

constinit const OpDef op::conv3d{
    .name = "conv3d",
    .doc = "Convolution over 3 dimensions.",
    .schema =
        "(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, "
        "int[3] dilation=1, int groups=1) -> Tensor",
    .python = "conv3d nn.functional.conv3d",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::lower,
    .infer = infer_user<3>,
    .decompose = decompose_user<3>,
};

constinit const OpDef op::conv3d_padding{
    .name = "conv3d_padding",
    .doc = "conv3d with padding \"valid\" or \"same\".",
    .schema =
        "(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, str padding=\"valid\", "
        "int[3] dilation=1, int groups=1) -> Tensor",
    .python = "conv3d nn.functional.conv3d",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::lower,
    .infer = infer_user<3>,
    .decompose = decompose_user<3>,
};

constinit const OpDef op::conv_transpose3d{
    .name = "conv_transpose3d",
    .doc = "Transposed convolution over 3 dimensions.",
    .schema =
        "(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, "
        "int[3] output_padding=0, int groups=1, int[3] dilation=1) -> Tensor",
    .python = "conv_transpose3d nn.functional.conv_transpose3d",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::lower,
    .infer = infer_user<3>,
    .decompose = decompose_user<3>,
};

}  // namespace janus
