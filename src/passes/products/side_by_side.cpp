// See side_by_side.h.
#include "passes/products/side_by_side.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "graph/cost.h"
#include "graph/op.h"
#include "ops/attributes.h"
#include "ops/expression.h"
#include "ops/list.h"
#include "ops/shape.h"
#include "ops/shape_rules.h"
#include "ops/view_rules.h"

namespace janus::passes {

using graph::Dim;
using graph::Node;
using graph::Shape;
using graph::Value;

namespace {

/// Where a value lies along the first dimension of a tensor that it is a view of.
struct Place {
  Value* base;
  Dim start, stop;

  static std::optional<Place> of(const Value& value) {
    const Node* node = value.definition;
    if (node == nullptr || (node->op != &op::select && node->op != &op::slice)) return std::nullopt;
    Value* base = node->inputs.front();
    const Dim& size = base->type.shape.front();
    if (ops::wrap_dim(node->attributes.get<int64_t>("dim"), base->type.rank()) != 0)
      return std::nullopt;
    if (node->op == &op::slice) {
      const ops::SliceRange range = ops::slice_range(node->attributes, size);
      if (range.step != 1) return std::nullopt;
      return Place{base, range.start, range.start + range.length};
    }
    Dim index = ops::dim_attribute(node->attributes, "index");
    if (!index.is_constant()) return std::nullopt;
    if (index.value() < 0) index = index + size;
    return Place{base, index, index + 1};
  }
};

/// The places of all, if they are in one tensor.
std::vector<Place> common_places(std::span<Value* const> parts) {
  std::vector<Place> places;
  for (const Value* part : parts) {
    const auto place = Place::of(*part);
    const bool fits = place && (places.empty() || place->base == places.front().base) &&
                      part->type.rank() == parts.front()->type.rank();
    if (!fits) return {};
    places.push_back(*place);
  }
  return places;
}

}  // namespace

bool lie_together(std::span<Value* const> parts) {
  const std::vector<Place> places = common_places(parts);
  if (places.empty()) return false;
  Dim length(0);
  for (size_t i = 0; i < places.size(); ++i) {
    if (i > 0 && !(places[i - 1].stop == places[i].start)) return false;
    length = length + (places[i].stop - places[i].start);
  }
  // Equal sizes may be written differently: then no slice is known to have just these rows.
  const Dim &start = places.front().start, &stop = places.back().stop;
  return ops::at_least_zero(start) && ops::at_least_zero(stop) &&
         ops::slice_range({{"start", ops::to_attribute(start)},
                           {"end", ops::to_attribute(stop)},
                           {"step", int64_t{1}}},
                          places.front().base->type.shape.front())
                 .length == length;
}

std::vector<size_t> natural_order(std::span<Value* const> parts) {
  std::vector<size_t> order(parts.size());
  std::iota(order.begin(), order.end(), 0);
  const std::vector<Place> places = common_places(parts);
  const bool are_numbers = !places.empty() && std::ranges::all_of(places, [](const Place& place) {
    return place.start.is_constant();
  });
  std::ranges::sort(order, {}, [&](size_t i) {
    const auto place = are_numbers ? places[i].start.value() : static_cast<int64_t>(parts[i]->id);
    return std::pair(place, i);
  });
  return order;
}

Value* found_side_by_side(graph::Builder& builder, std::span<Value* const> parts,
                          const Shape& shape) {
  const std::vector<Place> places = common_places(parts);
  ops::Expression whole(builder, places.front().base);
  const Dim &start = places.front().start, &stop = places.back().stop;
  if (!start.is(0) || !(stop == whole.shape().front())) whole = ops::sliced(whole, 0, start, stop);
  return ops::reshaped(whole, shape);
}

Value* put_side_by_side(graph::Builder& builder, std::span<Value* const> parts) {
  const bool are_rows = parts.front()->type.rank() == 1;
  if (lie_together(parts)) {
    Dim rows(0);
    for (const Value* part : parts) rows = rows + (are_rows ? Dim(1) : part->type.shape.front());
    return found_side_by_side(builder, parts, {rows, parts.front()->type.shape.back()});
  }
  const std::vector<Value*> operands(parts.begin(), parts.end());
  return builder.append(are_rows ? op::stack : op::cat, operands, {{"dim", int64_t{0}}})->output();
}

int64_t cost_of_joining(std::span<Value* const> parts) {
  if (lie_together(parts)) return 0;
  int64_t elements = 0;
  for (const Value* part : parts) elements += graph::typical_elements(part->type);
  // A list of operands takes longer to hand over than a few.
  const auto calls = 3 + static_cast<int64_t>(parts.size()) / 4;
  return graph::kElementsOfCopied * elements + graph::kElementsOfCall * calls;
}

std::optional<std::vector<size_t>> Stacks::find(const Values& parts) const {
  const auto found = orders_.find(sorted(parts));
  if (found == orders_.end()) return std::nullopt;
  std::unordered_map<const Value*, size_t> position;
  for (size_t i = 0; i < parts.size(); ++i) position[parts[i]] = i;
  std::vector<size_t> order;
  for (const Value* part : found->second) order.push_back(position.at(part));
  return order;
}

void Stacks::add(const Values& parts) {
  const Values key = sorted(parts);
  if (std::ranges::adjacent_find(key) == key.end()) orders_.try_emplace(key, parts);
}

int64_t Stacks::cost_of_joining(const Values& parts) const {
  const auto found = orders_.find(sorted(parts));
  const bool is_there = found != orders_.end() && found->second == parts;
  return is_there ? 0 : passes::cost_of_joining(parts);
}

Values Stacks::sorted(Values parts) {
  std::ranges::sort(parts, {}, &Value::id);
  return parts;
}

}  // namespace janus::passes
