// See reindex.h. A line is what the last index of the space runs over: along it each index of the
// mapped tensor goes up by its factor, so those that lie inside are a range.
#include "torch/reindex.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "graph/op.h"
#include "ops/attributes.h"
#include "ops/list.h"
#include "ops/reindex.h"
#include "torch/operators.h"
#include "torch/tensor.h"

namespace janus::torch {

using execute::Operands;

namespace {

int64_t floor_divided(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/// Of a line: where in the mapped tensor its element 0 would be, the step from element to element,
/// and which elements are inside.
struct Line {
  int64_t start = 0, step = 0, begin = 0, end = 0;
};

class Lines {
 public:
  Lines(const ops::IndexMap& map, at::IntArrayRef space, at::IntArrayRef mapped)
      : map_(map), space_(space), mapped_(mapped), strides_(mapped.size(), 1) {
    for (size_t k = mapped.size(); k-- > 1;) strides_[k - 1] = strides_[k] * mapped[k];
  }

  /// visit(number of the line, Line) for each line of the space, which has elements.
  template <class Visit>
  void for_each(Visit&& visit) const {
    const size_t outer = space_.empty() ? 0 : space_.size() - 1;
    std::vector<int64_t> index(outer, 0);
    for (int64_t number = 0;; ++number) {
      visit(number, line(index));
      size_t dim = outer;
      while (dim > 0 && ++index[dim - 1] == space_[dim - 1]) index[--dim] = 0;
      if (dim == 0) return;
    }
  }

  int64_t length() const { return space_.empty() ? 1 : space_.back(); }

 private:
  Line line(const std::vector<int64_t>& index) const {
    Line line{.end = length()};
    for (size_t k = 0; k < strides_.size(); ++k) {
      int64_t first = map_.offset[k];
      for (size_t j = 0; j < index.size(); ++j) first += map_.factor(k, j) * index[j];
      const int64_t factor = space_.empty() ? 0 : map_.factor(k, index.size());
      keep_inside(line, first, factor, mapped_[k]);
      line.start += first * strides_[k];
      line.step += factor * strides_[k];
    }
    return line;
  }

  /// Only elements i with 0 <= first + i * factor < size.
  static void keep_inside(Line& line, int64_t first, int64_t factor, int64_t size) {
    if (factor == 0) {
      if (first < 0 || first >= size) line.end = line.begin;
      return;
    }
    // i * factor lies in [-first, size - first)
    const int64_t low = -first, high = size - 1 - first;
    const int64_t begin = -floor_divided(factor > 0 ? -low : high, factor > 0 ? factor : -factor);
    const int64_t end = floor_divided(factor > 0 ? high : -low, factor > 0 ? factor : -factor) + 1;
    line.begin = std::min(std::max(line.begin, begin), line.end);
    line.end = std::max(std::min(line.end, end), line.begin);
  }

  const ops::IndexMap& map_;
  at::IntArrayRef space_, mapped_;
  std::vector<int64_t> strides_;
};

std::vector<int64_t> sizes_of(const graph::Node& node, const execute::SymbolLookup& symbols) {
  std::vector<int64_t> sizes;
  for (const graph::Dim& dim : ops::list_attribute(node.attributes, "size")) {
    const auto size = dim.evaluate(symbols);
    TORCHJANUS_CHECK(size, "reindex: the size is not known");
    sizes.push_back(*size);
  }
  return sizes;
}

class Reindex final : public execute::Operation {
 public:
  Reindex(const graph::Node& node, std::vector<int64_t> sizes)
      : sizes_(std::move(sizes)), map_(ops::index_map(node.attributes, sizes_.size())) {}

  void run(const Operands& operands) override {
    Borrowed given(operands.in(0));
    const at::Tensor from = given->contiguous();
    const at::Scalar fill = scalar_of(operands.in(1));
    at::Tensor out = at::empty(sizes_, from.options());
    const at::Tensor outside = at::full({}, fill, from.options());
    if (out.numel() > 0) read(from, out, outside);
    operands.out(0) = slot_of(std::move(out));
  }

 private:
  /// Elements are moved, whatever they mean.
  void read(const at::Tensor& from, at::Tensor& out, const at::Tensor& outside) const {
    switch (from.element_size()) {
      case 1:
        return read_as<uint8_t>(from, out, outside);
      case 2:
        return read_as<uint16_t>(from, out, outside);
      case 4:
        return read_as<uint32_t>(from, out, outside);
      default:
        return read_as<uint64_t>(from, out, outside);
    }
  }

  template <class Element>
  void read_as(const at::Tensor& from, at::Tensor& out, const at::Tensor& outside) const {
    const auto* const elements = static_cast<const Element*>(from.const_data_ptr());
    auto* const results = static_cast<Element*>(out.mutable_data_ptr());
    const Element fill = *static_cast<const Element*>(outside.const_data_ptr());
    const Lines lines(map_, sizes_, from.sizes());
    const int64_t length = lines.length();
    lines.for_each([&](int64_t number, const Line& line) {
      Element* const to = results + number * length;
      std::fill(to, to + line.begin, fill);
      for (int64_t i = line.begin; i < line.end; ++i) to[i] = elements[line.start + i * line.step];
      std::fill(to + line.end, to + length, fill);
    });
  }

  static at::Scalar scalar_of(const execute::Slot& slot) {
    switch (slot.kind()) {
      case execute::Slot::Kind::boolean:
        return slot.boolean();
      case execute::Slot::Kind::i64:
        return slot.i64();
      default:
        return slot.f64();
    }
  }

  std::vector<int64_t> sizes_;
  ops::IndexMap map_;
};

enum class Reduce : uint8_t { sum, maximum, minimum };

class ReindexReduce final : public execute::Operation {
 public:
  ReindexReduce(const graph::Node& node, std::vector<int64_t> sizes)
      : sizes_(std::move(sizes)),
        map_(ops::index_map(node.attributes, node.inputs[0]->type.shape.size())) {
    const std::string name = ops::text_attribute(node.attributes, "reduce");
    reduce_ = name == "sum" ? Reduce::sum : name == "amax" ? Reduce::maximum : Reduce::minimum;
  }

  void run(const Operands& operands) override {
    Borrowed given(operands.in(0));
    const at::Tensor from = given->contiguous();
    switch (from.scalar_type()) {
      case at::kFloat:
        return combine<float>(operands, from);
      case at::kDouble:
        return combine<double>(operands, from);
      default:
        return combine<int64_t>(operands, from);
    }
  }

 private:
  template <class Element>
  void combine(const Operands& operands, const at::Tensor& from) const {
    at::Tensor out = at::full(sizes_, identity<Element>(), from.options());
    if (from.numel() > 0 && out.numel() > 0) put<Element>(from, out);
    operands.out(0) = slot_of(std::move(out));
  }

  template <class Element>
  Element identity() const {
    using Limits = std::numeric_limits<Element>;
    if (reduce_ == Reduce::sum) return 0;
    if constexpr (Limits::has_infinity)
      return reduce_ == Reduce::maximum ? -Limits::infinity() : Limits::infinity();
    return reduce_ == Reduce::maximum ? Limits::lowest() : Limits::max();
  }

  template <class Element>
  void put(const at::Tensor& from, at::Tensor& out) const {
    const Element* const elements = from.const_data_ptr<Element>();
    Element* const results = out.mutable_data_ptr<Element>();
    const Lines lines(map_, from.sizes(), out.sizes());
    lines.for_each([&](int64_t number, const Line& line) {
      const Element* const row = elements + number * lines.length();
      for (int64_t i = line.begin; i < line.end; ++i) {
        Element& result = results[line.start + i * line.step];
        result = combined(result, row[i]);
      }
    });
  }

  /// The extremum of a NaN is NaN.
  template <class Element>
  Element combined(Element a, Element b) const {
    if (reduce_ == Reduce::sum) return a + b;
    if (a != a) return a;
    return b != b || (reduce_ == Reduce::maximum ? b > a : b < a) ? b : a;
  }

  std::vector<int64_t> sizes_;
  ops::IndexMap map_;
  Reduce reduce_;
};

}  // namespace

std::unique_ptr<execute::Operation> bind_reindex(const graph::Node& node,
                                                 const execute::SymbolLookup& symbols) {
  if (node.op == &op::reindex) return std::make_unique<Reindex>(node, sizes_of(node, symbols));
  if (node.op == &op::reindex_reduce)
    return std::make_unique<ReindexReduce>(node, sizes_of(node, symbols));
  return nullptr;
}

}  // namespace janus::torch
