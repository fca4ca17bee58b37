// See reindex.h. A line is what the last index of the space runs over: along it each index of the
// mapped tensor goes up by its factor, so those that lie inside are a range.
#include "torch/reindex.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ne.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "graph/op.h"
#include "ops/attributes.h"
#include "ops/list.h"
#include "ops/reindex.h"
#include "torch/tensor.h"
#include "torch/version.h"

namespace janus::torch {

using execute::Operands;

namespace {

int64_t floor_divided(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/// Of a line: where in the mapped tensor its element 0 would be, the step from element to element,
/// and which elements are inside. Its place among the elements that come to one of the tensor's, as
/// `argmax` counts.
struct Line {
  int64_t start = 0, step = 0, begin = 0, end = 0;
  int64_t place = 0, place_step = 0;
};

class Lines {
 public:
  Lines(const ops::IndexMap& map, at::IntArrayRef space, at::IntArrayRef mapped)
      : map_(map),
        space_(space),
        mapped_(mapped),
        strides_(mapped.size(), 1),
        place_strides_(space.size(), 0) {
    for (size_t k = mapped.size(); k-- > 1;) strides_[k - 1] = strides_[k] * mapped[k];
    int64_t count = 1;
    for (size_t j = space.size(); j-- > 0;) {
      if (map.is_followed_alone(j)) continue;
      place_strides_[j] = count;
      count *= space[j];
    }
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
    for (size_t j = 0; j < index.size(); ++j) line.place += place_strides_[j] * index[j];
    if (!space_.empty()) line.place_step = place_strides_.back();
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
  std::vector<int64_t> strides_, place_strides_;
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

/// visit(an element of that type), for all that are not widened.
template <class Visit>
at::Tensor with_elements(at::ScalarType dtype, Visit&& visit) {
  switch (dtype) {
    case at::kBool:
      return visit(bool());
    case at::kByte:
      return visit(uint8_t());
    case at::kChar:
      return visit(int8_t());
    case at::kShort:
      return visit(int16_t());
    case at::kInt:
      return visit(int32_t());
    case at::kLong:
      return visit(int64_t());
    case at::kDouble:
      return visit(double());
    default:
      return visit(float());
  }
}

/// How elements that are put to one place are combined: tests as extrema of booleans, half
/// precision in float32.
class ReindexReduce final : public execute::Operation {
 public:
  ReindexReduce(const graph::Node& node, std::vector<int64_t> sizes)
      : sizes_(std::move(sizes)),
        map_(ops::index_map(node.attributes, node.inputs[0]->type.shape.size())) {
    const std::string name = ops::text_attribute(node.attributes, "reduce");
    is_test_ = name == "any" || name == "all";
    is_position_ = name == "argmax" || name == "argmin";
    if (name != "sum")
      reduce_ =
          name == "amax" || name == "any" || name == "argmax" ? Reduce::maximum : Reduce::minimum;
  }

  void run(const Operands& operands) override {
    Borrowed given(operands.in(0));
    const at::ScalarType dtype = given->scalar_type();
    const bool is_half = dtype == at::kHalf || dtype == at::kBFloat16;
    at::Tensor from = is_test_ ? given->ne(0) : is_half ? given->to(at::kFloat) : *given;
    from = from.contiguous();
    at::Tensor out = with_elements(from.scalar_type(), [&]<class Element>(Element) {
      return is_position_ ? positions<Element>(from) : combined<Element>(from);
    });
    if (is_half && !is_test_ && !is_position_) out = out.to(dtype);
    operands.out(0) = slot_of(std::move(out));
  }

 private:
  enum class Reduce : uint8_t { sum, maximum, minimum };

  template <class Element>
  at::Tensor combined(const at::Tensor& from) const {
    at::Tensor out = at::full(sizes_, identity<Element>(), from.options());
    if (from.numel() == 0 || out.numel() == 0) return out;
    const Element* const elements = elements_of<Element>(from);
    Element* const results = out.mutable_data_ptr<Element>();
    const Lines lines(map_, from.sizes(), sizes_);
    lines.for_each([&](int64_t number, const Line& line) {
      const Element* const row = elements + number * lines.length();
      for (int64_t i = line.begin; i < line.end; ++i) {
        Element& result = results[line.start + i * line.step];
        if (reduce_ == Reduce::sum)
          result = static_cast<Element>(result + row[i]);
        else if (is_beyond(row[i], result))
          result = row[i];
      }
    });
    return out;
  }

  /// Elements that come to one place are met in the order of their places in the line.
  template <class Element>
  at::Tensor positions(const at::Tensor& from) const {
    at::Tensor out = at::full(sizes_, -1, from.options().dtype(at::kLong));
    if (from.numel() == 0 || out.numel() == 0) return out;
    const Element* const elements = elements_of<Element>(from);
    int64_t* const places = out.mutable_data_ptr<int64_t>();
    const at::Tensor found = at::empty(sizes_, from.options());
    Element* const extrema = found.mutable_data_ptr<Element>();
    const Lines lines(map_, from.sizes(), sizes_);
    lines.for_each([&](int64_t number, const Line& line) {
      const Element* const row = elements + number * lines.length();
      for (int64_t i = line.begin; i < line.end; ++i) {
        const int64_t to = line.start + i * line.step;
        if (places[to] >= 0 && !is_beyond(row[i], extrema[to])) continue;
        extrema[to] = row[i];
        places[to] = line.place + i * line.place_step;
      }
    });
    return out;
  }

  template <class Element>
  Element identity() const {
    using Limits = std::numeric_limits<Element>;
    if (reduce_ == Reduce::sum) return 0;
    if constexpr (Limits::has_infinity)
      return reduce_ == Reduce::maximum ? -Limits::infinity() : Limits::infinity();
    return reduce_ == Reduce::maximum ? Limits::lowest() : Limits::max();
  }

  /// NaN is beyond all numbers.
  template <class Element>
  bool is_beyond(Element a, Element b) const {
    if (a != a) return b == b;
    return reduce_ == Reduce::maximum ? a > b : a < b;
  }

  std::vector<int64_t> sizes_;
  ops::IndexMap map_;
  Reduce reduce_ = Reduce::sum;
  bool is_test_ = false, is_position_ = false;
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
