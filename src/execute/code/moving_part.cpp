// See moving_part.h.
#include "execute/code/moving_part.h"

#include "graph/op.h"
#include "graph/run_time_symbols.h"
#include "ops/attributes.h"
#include "ops/list.h"
#include "ops/view_rules.h"

namespace janus::execute {

using graph::Dim;
using graph::Node;
using graph::Shape;

namespace {

std::optional<MovingPart> part_of(const Node& node, const Shape& whole, const Dim& first,
                                  const Dim& behind) {
  const auto dimension = static_cast<size_t>(ops::dim_of(node, static_cast<int64_t>(whole.size())));
  return MovingPart{&node, dimension, first, behind, whole[dimension]};
}

/// By the attributes `start` and `end`, both of which have to be given.
std::optional<MovingPart> part_by_bounds(const Node& node, const Shape& whole) {
  if (node.attributes.is_none("start") || node.attributes.is_none("end")) return std::nullopt;
  return part_of(node, whole, ops::dim_attribute(node.attributes, "start"),
                 ops::dim_attribute(node.attributes, "end"));
}

std::optional<MovingPart> part_by_index(const Node& node, const Shape& whole) {
  const Dim index = ops::dim_attribute(node.attributes, "index");
  return part_of(node, whole, index, index + 1);
}

}  // namespace

std::optional<MovingPart> moving_part(const Node& node) {
  const auto whole = [&]() -> const Shape& { return node.inputs[0]->type.shape; };
  if (node.op == &op::narrow) {
    const Dim first = ops::dim_attribute(node.attributes, "start");
    return part_of(node, whole(), first, first + ops::dim_attribute(node.attributes, "length"));
  }
  if (node.op == &op::select || node.op == &op::select_scatter) return part_by_index(node, whole());
  if (node.op == &op::slice_scatter) return part_by_bounds(node, whole());
  const auto result = [&]() -> const Shape& { return node.output()->type.shape; };
  if (node.op == &op::select_backward) return part_by_index(node, result());
  if (node.op == &op::slice_backward) return part_by_bounds(node, result());
  return std::nullopt;
}

bool MovingPart::depends_on(const std::set<std::string>& symbols) const {
  return graph::is_parameterised_by(*node, symbols);
}

int64_t moved_bytes(const std::vector<Move>& moves, const std::vector<int64_t>& firsts) {
  int64_t bytes = 0;
  for (const Move& move : moves) bytes += move.bytes_per * firsts[move.part];
  return bytes;
}

}  // namespace janus::execute
