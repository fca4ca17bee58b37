// What is known of tensors' strides.
//
// The graph's tensors have no strides, but programs see eager's: by `stride()`, by what `view`
// accepts, by whether `reshape` shares memory. So the interpreter follows them through views and
// element-wise operators, as expressions over dimensions, like shapes.
#pragma once

#include <optional>

#include "frontend/values/value.h"
#include "graph/op.h"

namespace janus::frontend {

/// One stride for each dimension; nothing: not known.
using Strides = std::optional<graph::Shape>;

/// Those of a tensor whose elements lie in the order of their indices.
graph::Shape contiguous_strides(const graph::Shape& shape);
/// Whether the strides are surely those, as far as anybody can tell (those of single elements do
/// not matter).
bool are_contiguous(const graph::Shape& shape, const Strides& strides);
bool is_contiguous(const TensorState& tensor);
bool is_surely_not_contiguous(const TensorState& tensor);
/// Whether two tensors of one shape surely have other strides.
bool surely_lie_differently(const TensorState& a, const TensorState& b);
/// Whether its elements surely lie in the order of torch's channels_last or channels_last_3d.
bool is_channels_last(const TensorState& tensor);

/// Of a fresh result of the operator, whose tensor operands these are.
Strides strides_of_result(const graph::OpDef& op, const graph::Shape& shape,
                          const std::vector<std::shared_ptr<Tensor>>& operands);

/// The dimensions from the outermost to the innermost in memory, where the elements fill that in
/// another order than that of their indices; nothing: they don't, or it isn't known.
std::optional<graph::Shape> order_in_memory(const graph::Shape& shape, const Strides& strides);
std::optional<graph::Shape> order_in_memory(const TensorState& tensor);
/// The order that puts dimensions back which `order` has put elsewhere.
graph::Shape inverse_order(const graph::Shape& order);
/// The type with its dimensions in that order; itself if there is none.
graph::Type type_in_order(const graph::Type& type, const std::optional<graph::Shape>& order);

/// What eager does when it is asked for another shape of the same elements.
enum class Reshaping { view, copy, unknown };
/// Whether the tensor has a view of the shape `wanted`.
Reshaping reshaping(const TensorState& tensor, const graph::Shape& wanted);
/// Whether what the node, an operator on views, gives of `base` is one.
Reshaping reshaping_by(const graph::Node& node, const TensorState& base);

/// Of what the node with the trait `view` gives of `base`, if it is a view.
Strides strides_of_view(const graph::Node& node, size_t output, const TensorState& base);

}  // namespace janus::frontend
