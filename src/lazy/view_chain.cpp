#include "lazy/view_chain.h"

#include <algorithm>
#include <numeric>

#include "ops/attributes.h"
#include "ops/list.h"

namespace janus::lazy {

using graph::Builder;
using graph::Shape;
using graph::Value;

namespace {

struct Dimension {
  int64_t index = 0, size = 0, stride = 0;
};

/// Dimensions of more than one element that are not broadcast, by falling stride.
std::vector<Dimension> by_stride(const Geometry& geometry) {
  std::vector<Dimension> dimensions;
  for (size_t d = 0; d < geometry.sizes.size(); ++d)
    if (geometry.sizes[d] != 1 && geometry.strides[d] != 0)
      dimensions.push_back({static_cast<int64_t>(d), geometry.sizes[d], geometry.strides[d]});
  std::ranges::stable_sort(dimensions, std::ranges::greater(), &Dimension::stride);
  return dimensions;
}

int64_t product(std::span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

bool is_broadcast(const Geometry& geometry) {
  for (size_t d = 0; d < geometry.sizes.size(); ++d)
    if (geometry.sizes[d] != 1 && geometry.strides[d] == 0) return true;
  return false;
}

/// How many elements of the storage it covers.
int64_t count_of(const Geometry& geometry) {
  int64_t count = 1;
  for (size_t d = 0; d < geometry.sizes.size(); ++d)
    if (geometry.strides[d] != 0) count *= geometry.sizes[d];
  return count;
}

bool is_dense(std::span<const Dimension> by_stride) {
  int64_t expected = 1;
  for (auto each = by_stride.rbegin(); each != by_stride.rend(); ++each) {
    if (each->stride != expected) return false;
    expected *= each->size;
  }
  return true;
}

Shape shape_of(std::span<const int64_t> sizes) { return Shape(sizes.begin(), sizes.end()); }

Value* reshaped(Builder& builder, Value* value, const Shape& shape) {
  if (value->type.shape == shape) return value;
  return op::reshape(builder, {value}, {{"shape", shape}});
}

Value* permuted(Builder& builder, Value* value, std::span<const int64_t> order) {
  if (std::ranges::is_sorted(order)) return value;
  return op::permute(builder, {value}, {{"dims", shape_of(order)}});
}

std::vector<int64_t> inverse(std::span<const int64_t> order) {
  std::vector<int64_t> made(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    made[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return made;
}

}  // namespace

bool covers_more(const Geometry& one, const Geometry& other) {
  const int64_t count = count_of(one), others = count_of(other);
  return count > others || (count == others && is_broadcast(other) && !is_broadcast(one));
}

std::optional<ViewChain> ViewChain::between(const Geometry& base, const Geometry& view,
                                            int64_t offset) {
  if (base.dtype != view.dtype) return std::nullopt;
  const int64_t count = product(base.sizes);
  const std::vector<Dimension> of_base = by_stride(base), of_view = by_stride(view);
  if (count == 0 || product(view.sizes) == 0 || is_broadcast(base) || !is_dense(of_base))
    return std::nullopt;

  ViewChain chain;
  chain.base_sizes_.assign(base.sizes.begin(), base.sizes.end());
  chain.sizes_.assign(view.sizes.begin(), view.sizes.end());
  chain.base_order_.resize(base.sizes.size());
  std::iota(chain.base_order_.begin(), chain.base_order_.end(), 0);
  std::ranges::stable_sort(chain.base_order_, std::ranges::greater(), [&](int64_t d) {
    const auto at = static_cast<size_t>(d);
    return base.sizes[at] == 1 ? int64_t{0} : base.strides[at];
  });

  int64_t stretch = count, left = offset;
  for (const Dimension& each : of_view) {
    if (stretch % each.stride != 0) return std::nullopt;
    const int64_t full = stretch / each.stride, start = left / each.stride;
    if (start + each.size > full) return std::nullopt;
    left %= each.stride;
    stretch = each.stride;
    chain.parts_.push_back({full, start, each.size, start == 0 && each.size == full});
  }
  if (left >= stretch) return std::nullopt;
  if (stretch > 1) chain.parts_.push_back({.full = stretch, .start = left, .size = 1});

  for (size_t d = 0; d < view.sizes.size(); ++d) {
    const bool is_kept = view.sizes[d] != 1 && view.strides[d] != 0;
    chain.is_broadcast_ |= view.sizes[d] != 1 && view.strides[d] == 0;
    chain.with_ones_.emplace_back(is_kept ? view.sizes[d] : 1);
    if (!is_kept) continue;
    const auto found = std::ranges::find(of_view, static_cast<int64_t>(d), &Dimension::index);
    chain.order_.push_back(found - of_view.begin());
  }
  if (stretch > 1) chain.order_.push_back(static_cast<int64_t>(chain.parts_.size()) - 1);
  return chain;
}

template <class Self, class Visit>
void ViewChain::visit_sizes(Self& self, const Visit& visit) {
  for (auto& size : self.base_sizes_) visit(size);
  for (auto& part : self.parts_) {
    visit(part.full);
    visit(part.start);
    visit(part.size);
  }
  for (auto& size : self.with_ones_) visit(size);
  for (auto& size : self.sizes_) visit(size);
}

std::vector<int64_t> ViewChain::sizes() const {
  std::vector<int64_t> made;
  visit_sizes(*this, [&](const graph::Dim& size) { made.push_back(size.value()); });
  return made;
}

std::vector<uint64_t> ViewChain::form() const {
  std::vector<uint64_t> words = {is_broadcast_ ? uint64_t{1} : 0, base_order_.size(), parts_.size(),
                                 order_.size(), sizes_.size()};
  for (const int64_t each : base_order_) words.push_back(static_cast<uint64_t>(each));
  for (const int64_t each : order_) words.push_back(static_cast<uint64_t>(each));
  for (const Part& part : parts_) words.push_back(part.is_whole ? 1 : 0);
  for (size_t d = 0; d < sizes_.size(); ++d) words.push_back(with_ones_[d] == sizes_[d] ? 1 : 0);
  return words;
}

ViewChain ViewChain::with_sizes(std::span<const graph::Dim> sizes) const {
  ViewChain made = *this;
  size_t next = 0;
  visit_sizes(made, [&](graph::Dim& size) { size = sizes[next++]; });
  return made;
}

Shape ViewChain::full_sizes() const {
  Shape sizes;
  for (const Part& part : parts_) sizes.push_back(part.full);
  return sizes;
}

Value* ViewChain::in_memory_order(Builder& builder, Value* base) const {
  return reshaped(builder, permuted(builder, base, base_order_), full_sizes());
}

Value* ViewChain::part(Builder& builder, Value* value, size_t dim) const {
  const Part& part = parts_[dim];
  if (part.is_whole) return value;
  const graph::AttributeValue start = ops::to_attribute(part.start);
  if (!part.start.is_constant())  // so that its size is known whatever the start is
    return op::narrow(builder, {value},
                      {{"dim", static_cast<int64_t>(dim)},
                       {"start", start},
                       {"length", ops::to_attribute(part.size)}});
  return op::slice(builder, {value},
                   {{"dim", static_cast<int64_t>(dim)},
                    {"start", start},
                    {"end", ops::to_attribute(part.start + part.size)}});
}

Value* ViewChain::read(Builder& builder, Value* base) const {
  Value* value = in_memory_order(builder, base);
  for (size_t d = 0; d < parts_.size(); ++d) value = part(builder, value, d);
  value = reshaped(builder, permuted(builder, value, order_), with_ones_);
  if (!is_broadcast_) return value;
  return op::expand(builder, {value}, {{"size", sizes_}});
}

Value* ViewChain::with_part(Builder& builder, Value* value, size_t dim, Value* replacement) const {
  while (dim < parts_.size() && parts_[dim].is_whole) ++dim;
  if (dim == parts_.size()) return replacement;
  Value* const inner = with_part(builder, part(builder, value, dim), dim + 1, replacement);
  return op::slice_scatter(builder, {value, inner},
                           {{"dim", static_cast<int64_t>(dim)},
                            {"start", ops::to_attribute(parts_[dim].start)},
                            {"end", ops::to_attribute(parts_[dim].start + parts_[dim].size)}});
}

Value* ViewChain::write(Builder& builder, Value* base, Value* value) const {
  Shape ordered, sizes;
  for (const int64_t each : order_) ordered.push_back(parts_[static_cast<size_t>(each)].size);
  Value* replacement = permuted(builder, reshaped(builder, value, ordered), inverse(order_));
  replacement = with_part(builder, in_memory_order(builder, base), 0, replacement);
  for (const int64_t each : base_order_) sizes.push_back(base_sizes_[static_cast<size_t>(each)]);
  return permuted(builder, reshaped(builder, replacement, sizes), inverse(base_order_));
}

}  // namespace janus::lazy
