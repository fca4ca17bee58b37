#include "frontend/values/strides.h"

#include <algorithm>
#include <numeric>
#include <ranges>

#include "graph/op.h"
#include "ops/shape.h"
#include "ops/view_rules.h"

namespace janus::frontend {

using graph::Dim;
using graph::Shape;

namespace {

// ---- Comparing sizes ----------------------------------------------------------------------------

/// Less than, equal to or greater than zero, as `a` is to `b`; nothing: not known.
std::optional<int> compare(const Dim& a, const Dim& b) {
  if (a == b) return 0;
  if (a.is_constant() && b.is_constant()) return a.value() < b.value() ? -1 : 1;
  // Strides are products of sizes: where one is a multiple of the other, it is the larger one.
  if (!b.is(0) && floor_divide(a, b) * b == a) return 1;
  if (!a.is(0) && floor_divide(b, a) * a == b) return -1;
  return std::nullopt;
}

/// Steps of what has one element, or none, matter to nobody.
bool may_be_one(const Dim& size) { return size.lower_bound().value_or(0) < 2; }

bool may_be_none(const Dim& size) { return size.lower_bound().value_or(0) < 1; }

bool has_element_none(const Shape& shape) {
  return std::ranges::any_of(shape, [](const Dim& size) { return size.is(0); });
}

// ---- Results of element-wise operators ----------------------------------------------------------

/// The strides as broadcasting to `shape` makes them: 0 where an element is repeated.
Shape broadcast_strides(const Shape& from, const Shape& strides, const Shape& shape) {
  Shape result(shape.size(), Dim(0));
  const size_t offset = shape.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (!from[i].is(1) || shape[offset + i].is(1)) result[offset + i] = strides[i];
  return result;
}

/// Whether dimension `a` belongs further outside than `b` (1), further inside (-1), or none of the
/// operands says (0): the first operand that does not repeat either decides.
std::optional<int> order_of(size_t a, size_t b, const Shape& shape,
                            const std::vector<Shape>& operands) {
  for (const Shape& strides : operands) {
    if (strides[a].is(0) || strides[b].is(0)) continue;
    const std::optional<int> order = compare(strides[a], strides[b]);
    if (!order) return std::nullopt;
    if (*order != 0) return order;
    const std::optional<int> by_size = compare(shape[a], shape[b]);
    if (!by_size) return std::nullopt;
    if (*by_size > 0) return 1;
  }
  return 0;
}

/// The dimensions from the innermost to the outermost, as torch's iteration over operands chooses
/// the layout of a result.
std::optional<std::vector<size_t>> iteration_order(const Shape& shape,
                                                   const std::vector<Shape>& operands) {
  std::vector<size_t> order(shape.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  for (size_t i = 1; i < order.size(); ++i) {
    size_t moving = i;
    for (size_t j = i; j-- > 0;) {
      const std::optional<int> relation = order_of(order[j], order[moving], shape, operands);
      if (!relation) return std::nullopt;
      if (*relation < 0) break;
      if (*relation > 0) {
        std::swap(order[j], order[moving]);
        moving = j;
      }
    }
  }
  return order;
}

bool have_equal_layouts(const Shape& shape, const std::vector<std::shared_ptr<Tensor>>& operands) {
  return std::ranges::all_of(operands, [&](const auto& tensor) {
    return tensor->value->type.shape == shape && tensor->strides == operands.front()->strides;
  });
}

/// In the order given, without gaps.
Shape dense_strides(const Shape& shape, const std::vector<size_t>& inner_to_outer) {
  Shape strides(shape.size(), Dim(1));
  Dim next(1);
  for (const size_t dim : inner_to_outer) {
    strides[dim] = next;
    next = next * shape[dim];
  }
  return strides;
}

bool is_dense(const Shape& shape, const Shape& strides) {
  const auto order = iteration_order(shape, {strides});
  return order && dense_strides(shape, *order) == strides;
}

Strides elementwise_strides(const Shape& shape,
                            const std::vector<std::shared_ptr<Tensor>>& operands) {
  std::vector<Shape> strides;
  for (const auto& tensor : operands) {
    const Shape& from = tensor->value->type.shape;
    if (!tensor->strides || from.size() > shape.size()) return std::nullopt;
    strides.push_back(broadcast_strides(from, *tensor->strides, shape));
  }
  if (have_equal_layouts(shape, operands) && is_dense(shape, *operands.front()->strides))
    return operands.front()->strides;
  const auto order = iteration_order(shape, strides);
  if (!order) return std::nullopt;
  return dense_strides(shape, *order);
}

// ---- Views --------------------------------------------------------------------------------------

/// Neighbouring dimensions that one stride steps through: they can be merged and split anew.
struct Run {
  Dim count;   ///< of elements
  Dim stride;  ///< between two of them
};

/// From the innermost to the outermost. `certain`: they surely can't be merged any further.
std::vector<Run> runs_of(const Shape& shape, const Shape& strides, bool& certain) {
  std::vector<Run> runs;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i].is(1)) continue;
    if (may_be_one(shape[i])) certain = false;
    if (!runs.empty()) {
      const std::optional<int> gap = compare(strides[i], runs.back().count * runs.back().stride);
      if (gap == 0) {
        runs.back().count = runs.back().count * shape[i];
        continue;
      }
      if (!gap) certain = false;
    }
    runs.push_back({shape[i], strides[i]});
  }
  return runs;
}

/// The strides of a view of that shape; nothing: there is none, surely if `certain`.
Strides reshaped_strides(const Shape& shape, const Shape& strides, const Shape& wanted,
                         bool& certain) {
  certain = true;
  if (are_contiguous(shape, strides)) return contiguous_strides(wanted);
  const std::vector<Run> runs = runs_of(shape, strides, certain);
  Shape result(wanted.size(), Dim(1));
  size_t run = 0;
  Dim taken(1);
  for (size_t i = wanted.size(); i-- > 0;) {
    if (run + 1 < runs.size() && taken == runs[run].count && !wanted[i].is(1)) {
      ++run;
      taken = Dim(1);
    }
    result[i] = runs[run].stride * taken;
    taken = taken * wanted[i];
    const std::optional<int> rest = compare(taken, runs[run].count);
    if (!rest) certain = false;
    if (!rest || *rest > 0) return std::nullopt;
  }
  return result;
}

Shape without(Shape dims, int64_t dim) {
  dims.erase(dims.begin() + dim);
  return dims;
}

/// `dims` of the dimensions that squeezing leaves: all, or those that the node does not name.
Shape squeezed(const graph::Node& node, const Shape& shape, const Shape& dims) {
  const bool all = !node.attributes.has("dim");
  std::vector<bool> is_dropped(shape.size(), all);
  if (!all && !shape.empty())  // a number takes dimension 0 as well
    for (const Dim& dim : node.attributes.get<Shape>("dim"))
      is_dropped[static_cast<size_t>(
          ops::wrap_dim(dim.value(), static_cast<int64_t>(shape.size())))] = true;
  Shape result;
  for (size_t i = 0; i < shape.size(); ++i)
    if (!is_dropped[i] || !shape[i].is(1)) result.push_back(dims[i]);
  return result;
}

Shape permuted(const graph::Node& node, const Shape& strides) {
  const auto order = ops::permutation_of(node.op, node.attributes, strides.size());
  if (!order) return strides;
  Shape result;
  for (const size_t dim : *order) result.push_back(strides[dim]);
  return result;
}

Shape unsqueezed(const graph::Node& node, const Shape& shape, Shape strides) {
  const auto rank = static_cast<int64_t>(shape.size());
  const int64_t dim = ops::dim_of(node, rank + 1);
  const Dim stride = dim < rank ? ops::at(shape, dim) * ops::at(strides, dim) : Dim(1);
  strides.insert(strides.begin() + dim, stride);
  return strides;
}

}  // namespace

// ---- Contiguous tensors -------------------------------------------------------------------------

Shape contiguous_strides(const Shape& shape) {
  Shape strides(shape.size(), Dim(1));
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * (shape[i].is(0) ? Dim(1) : shape[i]);
  return strides;
}

namespace {

/// Whether strides are the same, but for those of dimensions of one element.
bool lie_alike(const Shape& shape, const Shape& strides, const Shape& others) {
  for (size_t i = 0; i < shape.size(); ++i)
    if (!shape[i].is(1) && !(strides[i] == others[i])) return false;
  return true;
}

}  // namespace

bool are_contiguous(const Shape& shape, const Strides& strides) {
  if (has_element_none(shape)) return true;
  if (!strides) return false;
  return lie_alike(shape, *strides, contiguous_strides(shape));
}

bool is_contiguous(const TensorState& tensor) {
  return are_contiguous(tensor.value->type.shape, tensor.strides);
}

namespace {

bool surely_differ(const Shape& shape, const Shape& strides, const Shape& others) {
  for (size_t i = 0; i < shape.size(); ++i)
    if (!may_be_one(shape[i]) && compare(strides[i], others[i]).value_or(0) != 0)
      return std::ranges::none_of(shape, may_be_none);
  return false;
}

}  // namespace

bool is_surely_not_contiguous(const TensorState& tensor) {
  const Shape& shape = tensor.value->type.shape;
  return tensor.strides && surely_differ(shape, *tensor.strides, contiguous_strides(shape));
}

bool surely_lie_differently(const TensorState& a, const TensorState& b) {
  return a.strides && b.strides && surely_differ(a.value->type.shape, *a.strides, *b.strides);
}

bool is_channels_last(const TensorState& tensor) {
  const Shape& shape = tensor.value->type.shape;
  if ((shape.size() != 4 && shape.size() != 5) || !tensor.strides) return false;
  std::vector<size_t> inner_to_outer = {1};
  for (size_t dim = shape.size(); dim-- > 2;) inner_to_outer.push_back(dim);
  inner_to_outer.push_back(0);
  return lie_alike(shape, *tensor.strides, dense_strides(shape, inner_to_outer));
}

namespace {

bool is_surely_channels_last(const TensorState& tensor) {
  const Shape& shape = tensor.value->type.shape;
  if (shape.size() != 4 || !is_channels_last(tensor)) return false;
  return std::all_of(shape.begin() + 1, shape.end(),
                     [](const Dim& size) { return size.lower_bound().value_or(0) >= 2; });
}

}  // namespace

// ---- Results and views --------------------------------------------------------------------------

Strides strides_of_result(const graph::OpDef& op, const Shape& shape,
                          const std::vector<std::shared_ptr<Tensor>>& operands) {
  using graph::Layout;
  const bool all_contiguous = std::ranges::all_of(
      operands, [](const std::shared_ptr<Tensor>& tensor) { return is_contiguous(*tensor); });
  if (all_contiguous || shape.size() <= 1) return contiguous_strides(shape);
  const auto image = [&](size_t count) -> Strides {
    const bool is_last = std::ranges::any_of(
        operands | std::views::take(count),
        [](const std::shared_ptr<Tensor>& tensor) { return is_surely_channels_last(*tensor); });
    if (!is_last || shape.size() != 4) return std::nullopt;
    return dense_strides(shape, {1, 3, 2, 0});
  };
  switch (graph::layout_of(op)) {
    case Layout::contiguous:
    case Layout::contiguous_copy:
      return contiguous_strides(shape);
    case Layout::operands:
      return elementwise_strides(shape, operands);
    case Layout::image:
    case Layout::normalised_image:
      return image(1);
    case Layout::filtered_image:
      return image(2);
    default:
      return std::nullopt;
  }
}

std::optional<Shape> order_in_memory(const Shape& shape, const Strides& strides) {
  if (!strides || are_contiguous(shape, strides) || !is_dense(shape, *strides)) return std::nullopt;
  const auto inner_to_outer = *iteration_order(shape, {*strides});
  Shape order;
  for (size_t i = inner_to_outer.size(); i-- > 0;)
    order.emplace_back(static_cast<int64_t>(inner_to_outer[i]));
  return order;
}

std::optional<Shape> order_in_memory(const TensorState& tensor) {
  return order_in_memory(tensor.value->type.shape, tensor.strides);
}

Shape inverse_order(const Shape& order) {
  Shape inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    inverse[static_cast<size_t>(order[i].value())] = static_cast<int64_t>(i);
  return inverse;
}

graph::Type type_in_order(const graph::Type& type, const std::optional<Shape>& order) {
  if (!order) return type;
  Shape shape;
  for (const graph::Dim& dim : *order)
    shape.push_back(type.shape[static_cast<size_t>(dim.value())]);
  return graph::Type::tensor(type.dtype, shape);
}

Reshaping reshaping(const TensorState& tensor, const Shape& wanted) {
  const Shape& shape = tensor.value->type.shape;
  if (are_contiguous(shape, tensor.strides)) return Reshaping::view;
  if (!tensor.strides) return Reshaping::unknown;
  bool certain = true;
  if (reshaped_strides(shape, *tensor.strides, wanted, certain)) return Reshaping::view;
  return certain ? Reshaping::copy : Reshaping::unknown;
}

Reshaping reshaping_by(const graph::Node& node, const TensorState& base) {
  switch (node.op->sees) {
    case graph::Sees::viewed:
    case graph::Sees::reshaped:
      return reshaping(base, node.output()->type.shape);
    case graph::Sees::in_order:
      if (is_contiguous(base)) return Reshaping::view;
      return is_surely_not_contiguous(base) ? Reshaping::copy : Reshaping::unknown;
    default:
      return Reshaping::view;
  }
}

namespace {

/// Of a view that sees a part of one dimension.
Strides strides_of_part(const graph::Part& part, Shape strides) {
  if (part.drops) return without(std::move(strides), part.dim);
  ops::at(strides, part.dim) = ops::at(strides, part.dim) * part.step;
  return strides;
}

}  // namespace

Strides strides_of_view(const graph::Node& node, size_t output, const TensorState& base) {
  using graph::Sees;
  const Shape& shape = base.value->type.shape;
  if (node.op->sees == Sees::in_order) return contiguous_strides(shape);
  if (!base.strides || !node.op->is(graph::Trait::view)) return std::nullopt;
  const Shape& strides = *base.strides;
  const Shape& wanted = node.outputs[output]->type.shape;
  bool certain = true;
  switch (node.op->sees) {
    case Sees::all:
      return strides;
    case Sees::reshaped:
    case Sees::viewed:
      return reshaped_strides(shape, strides, wanted, certain);
    case Sees::permuted:
      return permuted(node, strides);
    case Sees::part:
      return strides_of_part(node.op->part(node, output), strides);
    case Sees::squeezed:
      return squeezed(node, shape, strides);
    case Sees::unsqueezed:
      return unsqueezed(node, shape, strides);
    case Sees::expanded:
      return broadcast_strides(shape, strides, wanted);
    default:
      return std::nullopt;
  }
}

}  // namespace janus::frontend
