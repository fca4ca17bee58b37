// Pooling over windows: maxima with their positions, averages, and averages to a given size.
#include <array>
#include <numeric>

#include "ops/expression.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

constexpr Trait composite = Trait::pure | Trait::composite;

struct Window {
  Shape kernel, stride, padding, dilation;
  bool rounds_up = false;
};

Window window_of(const Attributes& attributes, size_t dimensions) {
  Window window{.kernel = list_attribute(attributes, "kernel_size", dimensions),
                .stride = {},
                .padding = list_attribute(attributes, "padding", dimensions),
                .dilation = Shape(dimensions, Dim(1)),
                .rounds_up = flag_attribute(attributes, "ceil_mode")};
  if (!attributes.is_none("stride"))
    window.stride = list_attribute(attributes, "stride", dimensions);
  if (window.stride.empty()) window.stride = window.kernel;
  if (attributes.has("dilation"))
    window.dilation = list_attribute(attributes, "dilation", dimensions);
  return window;
}

Dim pooled_size(const Infer& infer, const Window& window, size_t i, const Dim& input) {
  const Dim& kernel = window.kernel[i];
  const Dim& stride = window.stride[i];
  const Dim& padding = window.padding[i];
  if (!kernel.is_constant() || !stride.is_constant() || !padding.is_constant())
    infer.fail("window sizes must be known");
  if (stride.value() < 1) infer.fail(cat("stride ", stride));
  if (padding.value() < 0 || 2 * padding.value() > kernel.value())
    infer.fail(cat("padding ", padding, " is more than half of the window ", kernel));
  const Dim room = input + 2 * padding - window.dilation[i] * (kernel - 1) - 1;
  if (!window.rounds_up) return floor_divide(room, stride) + 1;
  // The last window has to start inside the input or its left padding.
  if (!input.is_constant()) infer.fail("ceil_mode with a size that varies");
  const Dim size = floor_divide(room + stride - 1, stride) + 1;
  const bool outside = ((size - 1) * stride).value() >= (input + padding).value();
  return outside ? size - 1 : size;
}

/// The shape after pooling the last `dimensions` dimensions.
template <size_t dimensions>
Shape pooled(const Infer& infer, const Type& input, const Window& window) {
  if (input.shape.size() != dimensions + 1 && input.shape.size() != dimensions + 2)
    infer.fail(cat("input ", input));
  Shape shape = input.shape;
  for (size_t i = 0; i < dimensions; ++i) {
    Dim& dim = shape[shape.size() - dimensions + i];
    dim = pooled_size(infer, window, i, dim);
    if (dim.is_constant() && dim.value() < 1) infer.fail(cat("the result would have size ", dim));
  }
  return shape;
}

template <size_t dimensions>
std::vector<Type> infer_pool(const Infer& infer) {
  const Type& input = floating_tensor(infer, 0);
  const auto window = window_of(infer.attributes, dimensions);
  return {Type::tensor(input.dtype, pooled<dimensions>(infer, input, window))};
}

template <size_t dimensions>
std::vector<Type> infer_max_pool(const Infer& infer) {
  const Type values = infer_pool<dimensions>(infer)[0];
  return {values, Type::tensor(DType::i64, values.shape)};
}

/// The type of operand 1, where operand 0 is the gradient of the result.
std::vector<Type> infer_backward(const Infer& infer) {
  if (floating_tensor(infer, 0).dtype != floating_tensor(infer, 1).dtype)
    infer.fail("gradient and operand differ in dtype");
  return {infer.type(1)};
}

Attributes window_attributes(const Node& node, size_t dimensions) {
  const auto window = window_of(node.attributes, dimensions);
  Attributes attributes{{"kernel_size", window.kernel},
                        {"stride", window.stride},
                        {"padding", window.padding},
                        {"ceil_mode", window.rounds_up}};
  for (const char* name : {"count_include_pad", "divisor_override"})
    if (const AttributeValue* value = node.attributes.find(name)) attributes.set(name, *value);
  if (node.attributes.has("dilation")) attributes.set("dilation", window.dilation);
  return attributes;
}

template <size_t dimensions>
void max_pool_gradient(Vjp& g, const OpDef& backward) {
  if (g.dout(0) == nullptr) return;
  g.add(0, apply(backward, window_attributes(g.node(), dimensions), dout(g), in(g, 0), out(g, 1)));
}

/// The elements at the positions that the maxima came from: positions count within the last
/// `dimensions` dimensions.
Expression at_positions(const Expression& x, const Expression& positions, size_t dimensions) {
  const auto flat = [&](const Expression& tensor) {
    const Shape& shape = tensor.shape();
    const Shape window(shape.end() - static_cast<ptrdiff_t>(dimensions), shape.end());
    Shape flattened(shape.begin(), shape.end() - static_cast<ptrdiff_t>(dimensions));
    flattened.push_back(element_count(window));
    return reshaped(tensor, flattened);
  };
  const int64_t last = x.rank() - static_cast<int64_t>(dimensions);
  return reshaped(apply(op::gather, {{"dim", last}}, flat(x), flat(positions)), positions.shape());
}

template <size_t dimensions>
void max_pool_backward_gradient(Vjp& g) {
  if (g.needs(0)) g.add(0, at_positions(dout(g), in(g, 2), dimensions));
  if (g.needs(1)) g.add(1, zeros_of(in(g, 1)));
}

/// One dimension as two, of which the first has size 1.
Shape doubled(const Shape& list, int64_t first) {
  Shape result{Dim(first)};
  result.insert(result.end(), list.begin(), list.end());
  return result;
}

Attributes doubled_window(const Node& node) {
  const auto window = window_of(node.attributes, 1);
  return {{"kernel_size", doubled(window.kernel, 1)},
          {"stride", doubled(window.stride, 1)},
          {"padding", doubled(window.padding, 0)},
          {"ceil_mode", window.rounds_up}};
}

std::vector<Value*> decompose_max_pool1d(const Decompose& d) {
  Attributes attributes = doubled_window(d.node);
  attributes.set("dilation", doubled(window_of(d.node.attributes, 1).dilation, 1));
  const auto x = unsqueezed(in(d, 0), -2);
  return {squeezed(apply(op::max_pool2d_with_indices, std::move(attributes), x), -2)};
}

std::vector<Value*> decompose_avg_pool1d(const Decompose& d) {
  Attributes attributes = doubled_window(d.node);
  attributes.set("count_include_pad", flag_attribute(d.node.attributes, "count_include_pad"));
  const auto x = unsqueezed(in(d, 0), -2);
  return {squeezed(apply(op::avg_pool2d, std::move(attributes), x), -2)};
}

template <size_t dimensions>
std::vector<Type> infer_functional_max_pool(const Infer& infer) {
  if (flag_attribute(infer.attributes, "return_indices"))
    infer.fail("return_indices has a result more");
  return infer_pool<dimensions>(infer);
}

template <size_t dimensions>
std::vector<Value*> decompose_max_pool(const Decompose& d) {
  const OpDef& op = dimensions == 2 ? op::max_pool2d_with_indices : op::max_pool3d_with_indices;
  return {apply(op, window_attributes(d.node, dimensions), in(d, 0))};
}

/// The sizes that the last dimensions get. None as an entry is not taken.
template <size_t dimensions>
Shape adaptive_shape(const Infer& infer, const Type& input) {
  const Shape sizes = list_attribute(infer.attributes, "output_size", dimensions);
  if (sizes.size() != dimensions ||
      (input.shape.size() != dimensions + 1 && input.shape.size() != dimensions + 2))
    infer.fail(cat("input ", input));
  Shape shape = input.shape;
  for (size_t i = 0; i < dimensions; ++i) {
    if (!sizes[i].is_constant() || sizes[i].value() < 1) infer.fail(cat("size ", sizes[i]));
    shape[shape.size() - dimensions + i] = sizes[i];
  }
  return shape;
}

template <size_t dimensions>
std::vector<Type> infer_adaptive(const Infer& infer) {
  const Type& input = floating_tensor(infer, 0);
  return {Type::tensor(input.dtype, adaptive_shape<dimensions>(infer, input))};
}

std::vector<Value*> decompose_adaptive_avg_pool2d(const Decompose& d) {
  const Shape sizes = list_attribute(d.node.attributes, "output_size", 2);
  const auto x = in(d, 0);
  if (sizes[0].is(1) && sizes[1].is(1))
    return {mean_over(x, std::array{x.rank() - 2, x.rank() - 1}, true)};
  return {apply(op::adaptive_avg_pool2d_native, {{"output_size", sizes}}, x)};
}

std::vector<Value*> decompose_adaptive_avg_pool1d(const Decompose& d) {
  const Shape sizes = list_attribute(d.node.attributes, "output_size", 1);
  const auto x = unsqueezed(in(d, 0), -2);
  return {squeezed(apply(op::adaptive_avg_pool2d, {{"output_size", doubled(sizes, 1)}}, x), -2)};
}

void adaptive_backward_gradient(Vjp& g) {
  const auto dy = in(g, 0);
  const Shape sizes{dy.shape()[dy.shape().size() - 2], dy.shape().back()};
  if (g.needs(0))
    g.add(0, apply(op::adaptive_avg_pool2d_native, {{"output_size", sizes}}, dout(g)));
  if (g.needs(1)) g.add(1, zeros_of(in(g, 1)));
}

void avg_pool2d_backward_gradient(Vjp& g) {
  if (g.needs(0)) g.add(0, apply(op::avg_pool2d, window_attributes(g.node(), 2), dout(g)));
  if (g.needs(1)) g.add(1, zeros_of(in(g, 1)));
}

}  // namespace

constinit const OpDef op::max_pool2d_with_indices{
    .name = "max_pool2d_with_indices",
    .doc = "The maximum of each window, and its position in the plane.",
    .schema =
        "(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, "
        "bool ceil_mode=False) -> (Tensor, Tensor)",
    .aten = "max_pool2d_with_indices",
    .python = "_C._nn.max_pool2d_with_indices",
    .infer = infer_max_pool<2>,
    .vjp = [](Vjp& g) { max_pool_gradient<2>(g, op::max_pool2d_with_indices_backward); },
};

constinit const OpDef op::max_pool2d_with_indices_backward{
    .name = "max_pool2d_with_indices_backward",
    .doc = "The gradient, added up at the positions that the maxima came from.",
    .schema =
        "(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, "
        "int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
    .aten = "max_pool2d_with_indices_backward",
    .infer = infer_backward,
    .vjp = max_pool_backward_gradient<2>,
};

constinit const OpDef op::max_pool3d_with_indices{
    .name = "max_pool3d_with_indices",
    .doc = "The maximum of each window of a volume, and its position.",
    .schema =
        "(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, "
        "bool ceil_mode=False) -> (Tensor, Tensor)",
    .aten = "max_pool3d_with_indices",
    .python = "_C._nn.max_pool3d_with_indices",
    .infer = infer_max_pool<3>,
    .vjp = [](Vjp& g) { max_pool_gradient<3>(g, op::max_pool3d_with_indices_backward); },
};

constinit const OpDef op::max_pool3d_with_indices_backward{
    .name = "max_pool3d_with_indices_backward",
    .doc = "The gradient, added up at the positions that the maxima came from.",
    .schema =
        "(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] padding, "
        "int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor",
    .aten = "max_pool3d_with_indices_backward",
    .infer = infer_backward,
    .vjp = max_pool_backward_gradient<3>,
};

constinit const OpDef op::max_pool1d{
    .name = "max_pool1d",
    .doc = "The maximum of each window of a line.",
    .schema =
        "(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, "
        "bool ceil_mode=False) -> Tensor",
    .python = "max_pool1d",
    .traits = composite,
    .infer = infer_pool<1>,
    .decompose = decompose_max_pool1d,
};

constinit const OpDef op::max_pool2d{
    .name = "max_pool2d",
    .doc = "The maximum of each window.",
    .schema =
        "(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, "
        "bool ceil_mode=False) -> Tensor",
    .python = "max_pool2d",
    .traits = composite,
    .infer = infer_pool<2>,
    .decompose = decompose_max_pool<2>,
};

constinit const OpDef op::max_pool3d{
    .name = "max_pool3d",
    .doc = "The maximum of each window of a volume.",
    .schema =
        "(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, "
        "bool ceil_mode=False) -> Tensor",
    .python = "max_pool3d",
    .traits = composite,
    .infer = infer_pool<3>,
    .decompose = decompose_max_pool<3>,
};

constinit const OpDef op::functional_max_pool1d{
    .name = "functional_max_pool1d",
    .doc = "max_pool1d with nn.functional's parameters.",
    .schema =
        "(Tensor input, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, "
        "int[1] dilation=1, bool ceil_mode=False, bool return_indices=False) -> Tensor",
    .python = "nn.functional.max_pool1d",
    .traits = composite,
    .infer = infer_functional_max_pool<1>,
    .decompose = decompose_max_pool1d,
};

constinit const OpDef op::functional_max_pool2d{
    .name = "functional_max_pool2d",
    .doc = "max_pool2d with nn.functional's parameters.",
    .schema =
        "(Tensor input, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, "
        "int[2] dilation=1, bool ceil_mode=False, bool return_indices=False) -> Tensor",
    .python = "nn.functional.max_pool2d",
    .traits = composite,
    .infer = infer_functional_max_pool<2>,
    .decompose = decompose_max_pool<2>,
};

constinit const OpDef op::functional_max_pool3d{
    .name = "functional_max_pool3d",
    .doc = "max_pool3d with nn.functional's parameters.",
    .schema =
        "(Tensor input, int[3] kernel_size, int[3]? stride=None, int[3] padding=0, "
        "int[3] dilation=1, bool ceil_mode=False, bool return_indices=False) -> Tensor",
    .python = "nn.functional.max_pool3d",
    .traits = composite,
    .infer = infer_functional_max_pool<3>,
    .decompose = decompose_max_pool<3>,
};

constinit const OpDef op::avg_pool2d{
    .name = "avg_pool2d",
    .doc = "The average of each window.",
    .schema =
        "(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, "
        "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    .aten = "avg_pool2d",
    .python = "nn.functional.avg_pool2d _C._nn.avg_pool2d",
    .infer = infer_pool<2>,
    .vjp =
        [](Vjp& g) {
          g.add(0,
                apply(op::avg_pool2d_backward, window_attributes(g.node(), 2), dout(g), in(g, 0)));
        },
};

constinit const OpDef op::avg_pool2d_backward{
    .name = "avg_pool2d_backward",
    .doc = "The gradient, spread over the windows.",
    .schema =
        "(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, "
        "bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
    .aten = "avg_pool2d_backward",
    .infer = infer_backward,
    .vjp = avg_pool2d_backward_gradient,
};

constinit const OpDef op::avg_pool1d{
    .name = "avg_pool1d",
    .doc = "The average of each window of a line.",
    .schema =
        "(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, "
        "bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
    .python = "avg_pool1d nn.functional.avg_pool1d",
    .traits = composite,
    .infer = infer_pool<1>,
    .decompose = decompose_avg_pool1d,
};

constinit const OpDef op::adaptive_avg_pool2d_native{
    .name = "_adaptive_avg_pool2d",
    .doc = "Averages of windows that are chosen so that the result has the given size.",
    .schema = "(Tensor self, int[2] output_size) -> Tensor",
    .aten = "_adaptive_avg_pool2d",
    .infer = infer_adaptive<2>,
    .vjp = [](Vjp& g) { g.add(0, apply(op::adaptive_avg_pool2d_backward, dout(g), in(g, 0))); },
};

constinit const OpDef op::adaptive_avg_pool2d_backward{
    .name = "_adaptive_avg_pool2d_backward",
    .doc = "The gradient, spread over the windows.",
    .schema = "(Tensor grad_output, Tensor self) -> Tensor",
    .aten = "_adaptive_avg_pool2d_backward",
    .infer = infer_backward,
    .vjp = adaptive_backward_gradient,
};

constinit const OpDef op::adaptive_avg_pool2d{
    .name = "adaptive_avg_pool2d",
    .doc = "Averages to a plane of the given size; to one element, the mean.",
    .schema = "(Tensor self, int[2] output_size) -> Tensor",
    .python = "nn.functional.adaptive_avg_pool2d _C._nn.adaptive_avg_pool2d",
    .traits = composite,
    .infer = infer_adaptive<2>,
    .decompose = decompose_adaptive_avg_pool2d,
};

constinit const OpDef op::adaptive_avg_pool1d{
    .name = "adaptive_avg_pool1d",
    .doc = "Averages to a line of the given size.",
    .schema = "(Tensor self, int[1] output_size) -> Tensor",
    .python = "adaptive_avg_pool1d nn.functional.adaptive_avg_pool1d",
    .traits = composite,
    .infer = infer_adaptive<1>,
    .decompose = decompose_adaptive_avg_pool1d,
};

}  // namespace janus
