// See read.h.
#include "ops/read.h"

#include <algorithm>

#include "graph/op.h"
#include "ops/shape_rules.h"

namespace janus::ops {

using graph::Access;
using graph::Dim;
using graph::Node;
using graph::Shape;
using graph::Value;

namespace {

/// A map in which every index is 0.
IndexMap empty_map(size_t mapped_rank, size_t space_rank) {
  return {.space_rank = space_rank,
          .factors = std::vector<int64_t>(mapped_rank * space_rank),
          .offset = std::vector<int64_t>(mapped_rank)};
}

void follow(IndexMap& map, size_t mapped, size_t space, int64_t factor = 1) {
  map.factors[mapped * map.space_rank + space] = factor;
}

size_t dim_of(const Node& node) {
  const int64_t rank = node.inputs[0]->type.rank();
  return static_cast<size_t>(wrap_dim(integer_attribute(node.attributes, "dim"), rank));
}

/// Whether ATen's layout of the result depends on unobservable strides: dimensions of size 1.
bool lies_by_hidden_strides(const Node& node) {
  const Shape& shape = node.output()->type.shape;
  return shape.size() > 1 && std::ranges::any_of(shape, [](const Dim& dim) { return dim.is(1); });
}

Read turned(const Node& node) {
  const Shape& shape = node.inputs[0]->type.shape;
  Read read{empty_map(shape.size(), shape.size())};
  for (size_t d = 0; d < shape.size(); ++d) follow(read.map, d, d);
  if (shape.empty()) return read;  // its one dimension, by eager's rules, has one element
  for (const Dim& dim : list_attribute(node.attributes, "dims")) {
    const auto d = static_cast<size_t>(wrap_dim(dim.value(), static_cast<int64_t>(shape.size())));
    follow(read.map, d, d, -1);
    if (shape[d].is_constant()) read.map.offset[d] = shape[d].value() - 1;
    read.turned.push_back(d);
  }
  return read;
}

Read divided(const Node& node) {
  const size_t rank = node.inputs[0]->type.shape.size();
  const std::vector<int64_t> divisors = numbers_of(node.attributes, "divisor"),
                             offsets = numbers_of(node.attributes, "offset");
  Read read{empty_map(rank, rank)};
  for (size_t d = 0; d < rank; ++d) {
    if (divisors[d] != 1) {
      read.divisions.push_back({d, divisors[d], offsets[d]});
      continue;
    }
    follow(read.map, d, d);
    read.map.offset[d] = offsets[d];
  }
  return read;
}

/// The read of a gather: one index for each element.
std::optional<Read> gathered(const Node& node) {
  const size_t rank = node.inputs[0]->type.shape.size(), dim = dim_of(node);
  if (rank == 0) return std::nullopt;
  Read read{empty_map(rank, rank), {{dim, node.inputs[1], rank}}};
  for (size_t d = 0; d < rank; ++d)
    if (d != dim) follow(read.map, d, d);
  return read;
}

/// The read of parts, with index tensors for some dimensions. The dimensions of the indices stand
/// at `place` of the result, between the remaining dimensions.
Read of_parts(const Value& operand, std::vector<LookUp> look_ups, size_t place, size_t index_rank) {
  const size_t rank = operand.type.shape.size();
  Read read{empty_map(rank, rank - look_ups.size() + index_rank), std::move(look_ups)};
  size_t next = place == 0 ? index_rank : 0;
  for (size_t d = 0; d < rank; ++d) {
    if (std::ranges::any_of(read.look_ups, [&](const LookUp& each) { return each.dim == d; }))
      continue;
    follow(read.map, d, next++);
    if (next == place) next += index_rank;
  }
  return read;
}

Read selected(const Node& node) {
  const size_t dim = dim_of(node);
  return of_parts(*node.inputs[0], {{dim, node.inputs[1], dim + 1}}, dim, 1);
}

Read embedded(const Node& node) {
  const size_t rank = node.inputs[1]->type.shape.size();
  return of_parts(*node.inputs[0], {{0, node.inputs[1], rank}}, 0, rank);
}

/// The read of advanced indexing: the dimensions of the indices replace adjacent indexed ones in
/// place; else they go to the front.
Read indexed(const Node& node) {
  std::vector<LookUp> look_ups;
  size_t rank = 0;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (node.inputs[i]->type.is_none()) continue;
    rank = std::max(rank, node.inputs[i]->type.shape.size());
    look_ups.push_back({i - 1, node.inputs[i], 0, true});
  }
  const size_t first = look_ups.front().dim;
  const bool adjacent = look_ups.back().dim - first + 1 == look_ups.size();
  const size_t place = adjacent ? first : 0;
  for (LookUp& each : look_ups) each.end = place + rank;
  return of_parts(*node.inputs[0], std::move(look_ups), place, rank);
}

}  // namespace

const LookUp* Read::look_up(size_t dim) const {
  const auto found = std::ranges::find(look_ups, dim, &LookUp::dim);
  return found == look_ups.end() ? nullptr : &*found;
}

const Division* Read::division(size_t dim) const {
  const auto found = std::ranges::find(divisions, dim, &Division::dim);
  return found == divisions.end() ? nullptr : &*found;
}

bool Read::turns(size_t dim) const { return std::ranges::find(turned, dim) != turned.end(); }

bool looks_up(const Node& node) {
  switch (node.op->access) {
    case Access::gathered:
    case Access::selected:
    case Access::embedded:
      return true;
    case Access::subscripted:
      return !lies_by_hidden_strides(node);
    default:
      return false;
  }
}

bool is_read(const Node& node) {
  switch (node.op->access) {
    case Access::mapped:
    case Access::divided:
      return true;
    case Access::reversed:
      return !lies_by_hidden_strides(node);
    default:
      return looks_up(node);
  }
}

std::optional<Read> read_of(const Node& node) {
  switch (node.op->access) {
    case Access::mapped:
      return Read{index_map(node.attributes, node.output()->type.shape.size())};
    case Access::divided:
      return divided(node);
    case Access::reversed:
      return turned(node);
    case Access::gathered:
      return gathered(node);
    case Access::selected:
      return selected(node);
    case Access::embedded:
      return embedded(node);
    case Access::subscripted:
      return indexed(node);
    default:
      return std::nullopt;
  }
}

}  // namespace janus::ops
