// Pooling over windows: maxima with their positions, averages, and adaptive averages.
#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "base/policy.h"
#include "ops/expression.h"
#include "ops/shape_rules.h"

namespace janus {

using namespace graph;
using namespace ops;

namespace {

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
  if (kernel.value() < 1) infer.fail(cat("a window of ", kernel));
  if (stride.value() < 1) infer.fail(cat("stride ", stride));
  if (!window.dilation[i].is_constant() || window.dilation[i].value() < 1)
    infer.fail(cat("dilation ", window.dilation[i]));
  if (padding.value() < 0 || 2 * padding.value() > kernel.value())
    infer.fail(cat("padding ", padding, " is more than half of the window ", kernel));
  const Dim room = input + 2 * padding - window.dilation[i] * (kernel - 1) - 1;
  if (!window.rounds_up) return floor_divide(room, stride) + 1;
  // The last window must start inside the input or its left padding.
  if (!input.is_constant()) infer.fail("ceil_mode with a size that varies");
  const Dim size = floor_divide(room + stride - 1, stride) + 1;
  const bool outside = ((size - 1) * stride).value() >= (input + padding).value();
  return outside ? size - 1 : size;
}

/// The result type of pooling the last `dimensions` dimensions.
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

/// The rule of backward operators: the type of operand 1; operand 0 is the gradient of the result.
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

// ---- Decomposition into reads of window elements -----------------------------------------------

int64_t product(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

/// The indices of element `number`, in row-major order.
std::vector<int64_t> indices(int64_t number, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> result(sizes.size());
  for (size_t i = sizes.size(); i-- > 0; number /= sizes[i]) result[i] = number % sizes[i];
  return result;
}

/// A window over dimensions of known sizes.
struct KnownWindow {
  size_t rank = 0;  ///< rank of the tensors
  std::vector<int64_t> kernel, stride, padding, dilation;
  std::vector<int64_t> input, output;  ///< sizes of the pooled dimensions
  std::vector<int64_t> steps;          ///< strides in a plane of the input

  size_t dimensions() const { return kernel.size(); }
  int64_t dim(size_t i) const { return static_cast<int64_t>(rank - dimensions() + i); }
  int64_t element_count() const { return product(kernel); }
  /// The place of element `number` in the window, in row-major order.
  std::vector<int64_t> place(int64_t number) const { return indices(number, kernel); }
};

std::vector<int64_t> known(const Shape& sizes) {
  std::vector<int64_t> result;
  for (const Dim& size : sizes) {
    if (!size.is_constant()) throw TypeError("pooling: sizes that vary");
    result.push_back(size.value());
  }
  return result;
}

/// Throws if kernels should not compute the pooling. Volumes stay ATen's: channels last, it gives
/// other positions for windows that are -inf everywhere.
KnownWindow known_window(const Window& window, const Shape& input, const Shape& output) {
  const size_t dimensions = window.kernel.size();
  const auto inner = [&](const Shape& shape) {
    return known(Shape(shape.end() - static_cast<ptrdiff_t>(dimensions), shape.end()));
  };
  KnownWindow result{.rank = input.size(),
                     .kernel = known(window.kernel),
                     .stride = known(window.stride),
                     .padding = known(window.padding),
                     .dilation = known(window.dilation),
                     .input = inner(input),
                     .output = inner(output),
                     .steps = std::vector<int64_t>(dimensions, 1)};
  for (size_t i = dimensions - 1; i-- > 0;)
    result.steps[i] = result.steps[i + 1] * result.input[i + 1];
  const int64_t area = result.steps.front() * result.input.front();
  if (result.element_count() > policy::kMostWindowElements ||
      area > std::numeric_limits<int32_t>::max())
    throw TypeError("pooling: large windows");
  return result;
}

/// The elements at one place of all windows; `fill` outside of the input.
Expression at_place(const Expression& x, const Shape& size, const KnownWindow& window,
                    const std::vector<int64_t>& place, double fill) {
  Shape matrix(size.size() * size.size(), Dim(0)), offset(size.size(), Dim(0));
  for (size_t d = 0; d < size.size(); ++d) matrix[d * size.size() + d] = 1;
  for (size_t i = 0; i < window.dimensions(); ++i) {
    const auto d = static_cast<size_t>(window.dim(i));
    matrix[d * size.size() + d] = window.stride[i];
    offset[d] = place[i] * window.dilation[i] - window.padding[i];
  }
  return apply(op::reindex, {{"size", size}, {"matrix", matrix}, {"offset", offset}}, x, fill);
}

/// The start of each window along a dimension; it may be negative.
Expression start_of(const Expression& windows, const KnownWindow& window, size_t i) {
  return apply(op::position, {{"dim", window.dim(i)}}, windows) * window.stride[i] -
         window.padding[i];
}

/// The distance of the first element without padding from the start of the window, as a position;
/// nullopt if it is always 0.
std::optional<Expression> distance_of_first(const Expression& windows, const KnownWindow& window) {
  std::optional<Expression> distance;
  for (size_t i = 0; i < window.dimensions(); ++i) {
    if (window.padding[i] == 0) continue;
    const Expression start = start_of(windows, window, i);
    Expression first = start;
    for (int64_t left = window.padding[i]; left > 0; left -= window.dilation[i])
      first = apply(op::where, apply(op::lt, first, 0), first + window.dilation[i], first);
    const auto along = (first - start) * window.steps[i];
    distance = distance ? *distance + along : along;
  }
  return distance;
}

/// Max pooling element by element, as in ATen: the first of equal elements wins, and each NaN
/// replaces what was found before. If no element is taken, the first one without padding counts.
std::vector<Value*> max_pool_by_element(const Decompose& d) {
  const Type& type = d.node.output()->type;
  const KnownWindow window =
      known_window(window_of(d.node.attributes, 2), in(d, 0).shape(), type.shape);
  const auto element = [&](int64_t number) {
    const double lowest = -std::numeric_limits<double>::infinity();
    return widened(at_place(in(d, 0), type.shape, window, window.place(number), lowest));
  };
  Expression best = element(0);
  std::optional<Expression> distance = distance_of_first(best, window);
  if (distance) distance = cast(*distance, DType::i32);
  for (int64_t number = 1; number < window.element_count(); ++number) {
    const Expression here = element(number);
    const auto taken = apply(op::bitwise_or, apply(op::gt, here, best), apply(op::isnan, here));
    best = apply(op::where, taken, here, best);
    int64_t away = 0;
    for (size_t i = 0; i < window.dimensions(); ++i)
      away += window.place(number)[i] * window.dilation[i] * window.steps[i];
    distance = distance ? apply(op::where, taken, away, *distance) : cast(taken, DType::i32) * away;
  }
  Expression index = start_of(best, window, 0) * window.steps[0];
  for (size_t i = 1; i < window.dimensions(); ++i)
    index = index + start_of(best, window, i) * window.steps[i];
  if (distance) index = index + cast(*distance, DType::i64);
  return {cast(best, type.dtype), index};
}

/// The range of indices along a dimension that count for averages.
struct Limits {
  int64_t lowest, highest;
};
Limits limits_of(const KnownWindow& window, size_t i, const Attributes& attributes) {
  const int64_t border = flag_attribute(attributes, "count_include_pad") ? window.padding[i] : 0;
  return {-border, window.input[i] + border};
}

/// Whether all windows have the full number of elements along a dimension.
bool are_whole(const KnownWindow& window, size_t i, const Limits& limits) {
  const int64_t last = (window.output[i] - 1) * window.stride[i] - window.padding[i];
  return -window.padding[i] >= limits.lowest && last + window.kernel[i] <= limits.highest;
}

/// The number of elements of each window along a dimension.
Expression count_along(const Expression& windows, const KnownWindow& window, size_t i,
                       const Limits& limits) {
  const auto start = start_of(windows, window, i), end = start + window.kernel[i];
  const auto first = apply(op::where, apply(op::lt, start, limits.lowest), limits.lowest, start),
             stop = apply(op::where, apply(op::gt, end, limits.highest), limits.highest, end);
  return stop - first;
}

/// The divisor of sums over windows: a number, and in `varying` a factor that differs between
/// windows.
int64_t divisor_of(const Expression& windows, const KnownWindow& window,
                   const Attributes& attributes, std::optional<Expression>& varying) {
  if (attributes.has("divisor_override") && !attributes.is_none("divisor_override")) {
    const int64_t divisor = integer_attribute(attributes, "divisor_override");
    if (divisor == 0) throw TypeError("pooling: a division by zero, which eager refuses");
    return divisor;
  }
  int64_t count = 1;
  for (size_t i = 0; i < window.dimensions(); ++i) {
    const Limits limits = limits_of(window, i, attributes);
    if (are_whole(window, i, limits)) {
      count *= window.kernel[i];
    } else {
      const auto along = count_along(windows, window, i, limits);
      varying = varying ? *varying * along : along;
    }
  }
  return count;
}

/// `0 + term(0) + term(1) + ...`, in this order.
template <class Term>
Expression sum_of(int64_t count, const Term& term) {
  Expression sum = term(0) + 0.0;
  for (int64_t number = 1; number < count; ++number) sum = sum + term(number);
  return sum;
}

/// The sum of each window, element by element as in ATen, at least in single precision.
Expression sum_of_elements(const Expression& x, const Shape& size, const KnownWindow& window) {
  return sum_of(window.element_count(), [&](int64_t number) {
    return widened(at_place(x, size, window, window.place(number), 0.0));
  });
}

std::vector<Value*> avg_pool_by_element(const Decompose& d) {
  const Type& type = d.node.output()->type;
  const KnownWindow window =
      known_window(window_of(d.node.attributes, 2), in(d, 0).shape(), type.shape);
  const auto sum = sum_of_elements(in(d, 0), type.shape, window);
  std::optional<Expression> varying;
  const int64_t count = divisor_of(sum, window, d.node.attributes, varying);
  return {cast(varying ? sum / (*varying * count) : sum / count, type.dtype)};
}

/// The window of an adaptive pooling whose sizes divide: all windows are equal and disjoint.
KnownWindow dividing_window(const Shape& input, const Shape& output) {
  Window window{.kernel = {}, .stride = {}, .padding = {0, 0}, .dilation = {1, 1}};
  for (size_t dim = input.size() - 2; dim < input.size(); ++dim) {
    const Dim &size = input[dim], &count = output[dim];
    if (!size.is_constant() || !count.is_constant() || size.value() == 0 ||
        size.value() % count.value() != 0)
      throw TypeError("pooling: windows that differ");
    window.kernel.push_back(size.value() / count.value());
  }
  window.stride = window.kernel;
  return known_window(window, input, output);
}

std::vector<Value*> adaptive_avg_pool_by_element(const Decompose& d) {
  const Type& type = d.node.output()->type;
  const KnownWindow window = dividing_window(in(d, 0).shape(), type.shape);
  // Divides as eager does: by one side, then by the other.
  auto average = sum_of_elements(in(d, 0), type.shape, window);
  for (const int64_t side : window.kernel) average = average / side;
  return {cast(average, type.dtype)};
}

// ---- From windows back to their elements --------------------------------------------------

/// For each element the value of a window that contains it: of the last such window, or of one that
/// is some windows before it; 0 if there is none.
Expression at_window(const Expression& windows, const Shape& size, const KnownWindow& window,
                     const std::vector<int64_t>& before) {
  Shape divisor(size.size(), Dim(1)), offset(size.size(), Dim(0));
  for (size_t i = 0; i < window.dimensions(); ++i) {
    const auto d = static_cast<size_t>(window.dim(i));
    divisor[d] = window.stride[i];
    offset[d] = window.padding[i] - before[i] * window.stride[i];
  }
  return apply(op::reindex_divided, {{"size", size}, {"divisor", divisor}, {"offset", offset}},
               windows);
}

void expect_single_rounding(const Type& type) {
  if (graph::is_half(type.dtype))
    throw TypeError("pooling: eager rounds half precision at each addition");
}

/// The gradient of average pooling. Eager divides the gradient of each window before it adds.
std::vector<Value*> avg_pool_backward_by_element(const Decompose& d) {
  const Type& type = d.node.output()->type;
  expect_single_rounding(type);
  const auto dy = in(d, 0);
  const KnownWindow window = known_window(window_of(d.node.attributes, 2), type.shape, dy.shape());
  std::optional<Expression> varying;
  const int64_t count = divisor_of(dy, window, d.node.attributes, varying);
  if (varying) throw TypeError("pooling: windows that differ");
  std::vector<int64_t> overlaps;
  for (size_t i = 0; i < window.dimensions(); ++i) {
    if (window.kernel[i] % window.stride[i] != 0)
      throw TypeError("pooling: elements in some windows more than others");
    overlaps.push_back(window.kernel[i] / window.stride[i]);
  }
  const int64_t windows = product(overlaps);
  return {sum_of(windows, [&](int64_t number) {
    const auto before = indices(windows - 1 - number, overlaps);
    return at_window(dy, type.shape, window, before) / count;
  })};
}

bool is_power_of_two(int64_t number) { return std::has_single_bit(static_cast<uint64_t>(number)); }

/// The gradient of adaptive average pooling. Eager divides by one side and then by the other in
/// planes, and by both at once with channels last. The results agree if a side is a power of two.
std::vector<Value*> adaptive_avg_pool_backward_by_element(const Decompose& d) {
  const Type& type = d.node.output()->type;
  expect_single_rounding(type);
  const KnownWindow window = dividing_window(type.shape, in(d, 0).shape());
  if (std::ranges::none_of(window.kernel, is_power_of_two))
    throw TypeError("pooling: eager's divisions hang on the layout");
  return {at_window(in(d, 0), type.shape, window, {0, 0}) / window.element_count() + 0.0};
}

// ---- Gradients ----------------------------------------------------------------------------------

template <size_t dimensions>
void max_pool_gradient(Vjp& g, const OpDef& backward) {
  if (g.dout(0) == nullptr) return;
  g.add(0, apply(backward, window_attributes(g.node(), dimensions), dout(g), in(g, 0), out(g, 1)));
}

/// The elements at the positions of the maxima, which count within the last `dimensions`
/// dimensions.
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

/// A one-dimensional list as a two-dimensional one, with `first` in front.
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

/// The adaptive sizes of the last dimensions. An entry None is refused.
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
    .layout = Layout::differs,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .access = Access::window,
    .images = {.operands = 0b1, .results = 0b11},
    .infer = infer_max_pool<2>,
    .vjp = [](Vjp& g) { max_pool_gradient<2>(g, op::max_pool2d_with_indices_backward); },
    .decompose = max_pool_by_element,
};

constinit const OpDef op::max_pool2d_with_indices_backward{
    .name = "max_pool2d_with_indices_backward",
    .doc = "The gradient, added up at the positions that the maxima came from.",
    .schema =
        "(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, "
        "int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor",
    .aten = "max_pool2d_with_indices_backward",
    .raises = Raises::own_indices,
    .saves = Saves::values,
    .images = {.operands = 0b111, .results = 0b1},
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
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
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
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
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
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
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
    .layout = Layout::image,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
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
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::full,
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
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
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
    .layout = Layout::image,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
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
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .autocast = Autocast::full,
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
    .layout = Layout::image,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .access = Access::window,
    .infer = infer_pool<2>,
    .vjp =
        [](Vjp& g) {
          g.add(0,
                apply(op::avg_pool2d_backward, window_attributes(g.node(), 2), dout(g), in(g, 0)));
        },
    .decompose = avg_pool_by_element,
};

constinit const OpDef op::avg_pool2d_backward{
    .name = "avg_pool2d_backward",
    .doc = "The gradient, spread over the windows.",
    .schema =
        "(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, "
        "bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor",
    .aten = "avg_pool2d_backward",
    .layout = Layout::gradient_image,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .access = Access::window,
    .infer = infer_backward,
    .vjp = avg_pool2d_backward_gradient,
    .decompose = avg_pool_backward_by_element,
};

constinit const OpDef op::avg_pool1d{
    .name = "avg_pool1d",
    .doc = "The average of each window of a line.",
    .schema =
        "(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, "
        "bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
    .python = "avg_pool1d nn.functional.avg_pool1d",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_pool<1>,
    .decompose = decompose_avg_pool1d,
};

constinit const OpDef op::adaptive_avg_pool2d_native{
    .name = "_adaptive_avg_pool2d",
    .doc = "Averages of windows that are chosen so that the result has the given size.",
    .schema = "(Tensor self, int[2] output_size) -> Tensor",
    .aten = "_adaptive_avg_pool2d",
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .access = Access::window,
    .infer = infer_adaptive<2>,
    .vjp = [](Vjp& g) { g.add(0, apply(op::adaptive_avg_pool2d_backward, dout(g), in(g, 0))); },
    .decompose = adaptive_avg_pool_by_element,
};

constinit const OpDef op::adaptive_avg_pool2d_backward{
    .name = "_adaptive_avg_pool2d_backward",
    .doc = "The gradient, spread over the windows.",
    .schema = "(Tensor grad_output, Tensor self) -> Tensor",
    .aten = "_adaptive_avg_pool2d_backward",
    .layout = Layout::gradient_image,
    .raises = Raises::never_for_floats,
    .saves = Saves::values,
    .access = Access::window,
    .infer = infer_backward,
    .vjp = adaptive_backward_gradient,
    .decompose = adaptive_avg_pool_backward_by_element,
};

constinit const OpDef op::adaptive_avg_pool2d{
    .name = "adaptive_avg_pool2d",
    .doc = "Averages to a plane of the given size; to one element, the mean.",
    .schema = "(Tensor self, int[2] output_size) -> Tensor",
    .python = "nn.functional.adaptive_avg_pool2d _C._nn.adaptive_avg_pool2d",
    .traits = composite,
    .layout = Layout::image,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_adaptive<2>,
    .decompose = decompose_adaptive_avg_pool2d,
};

constinit const OpDef op::adaptive_avg_pool1d{
    .name = "adaptive_avg_pool1d",
    .doc = "Averages to a line of the given size.",
    .schema = "(Tensor self, int[1] output_size) -> Tensor",
    .python = "adaptive_avg_pool1d nn.functional.adaptive_avg_pool1d",
    .traits = composite,
    .layout = Layout::differs,
    .raises = Raises::not_for_contents,
    .saves = Saves::values,
    .infer = infer_adaptive<1>,
    .decompose = decompose_adaptive_avg_pool1d,
};

}  // namespace janus
