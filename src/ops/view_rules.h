// Helpers that the views of ops/shape.cpp and ops/parts.cpp share.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "ops/shape_rules.h"

namespace janus::ops {

inline constexpr graph::Trait primary_view =
    graph::Trait::pure | graph::Trait::view | graph::Trait::linear;
inline constexpr graph::Trait composite_view =
    graph::Trait::pure | graph::Trait::view | graph::Trait::composite;

/// Whether the dimension is known not to be negative.
inline bool at_least_zero(const graph::Dim& dim) {
  const auto bound = dim.lower_bound();
  return bound && *bound >= 0;
}

inline graph::Dim& at(graph::Shape& shape, int64_t dim) { return shape[static_cast<size_t>(dim)]; }
inline const graph::Dim& at(const graph::Shape& shape, int64_t dim) {
  return shape[static_cast<size_t>(dim)];
}

/// The attribute `name`, a dimension index, normalised to [0, rank).
inline int64_t dim_of(const graph::Node& node, int64_t rank, std::string_view name = "dim") {
  return wrap_dim(integer_attribute(node.attributes, name), rank);
}
inline int64_t dim_of(const graph::Infer& infer, int64_t rank, std::string_view name = "dim") {
  return wrap_dim(infer, integer_attribute(infer.attributes, name), rank);
}

/// A single result type: `shape`, with the first operand's dtype.
inline std::vector<graph::Type> typed(const graph::Infer& infer, graph::Shape shape) {
  return {graph::Type::tensor(infer.type(0).dtype, std::move(shape))};
}

}  // namespace janus::ops
