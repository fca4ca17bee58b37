// See row_sums.h. ATen makes an operator of each row, or looks up in a table of counts for each.
// Rows are added in the order of their indices, as ATen does, so sums are its bit for bit; threads
// have parts of the table each, and go over all indices.
#include "torch/row_sums.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/thread_pool.h"
#include "graph/constant.h"
#include "graph/cost.h"
#include "graph/op.h"
#include "kernels/sharing.h"
#include "ops/attributes.h"
#include "ops/list.h"
#include "torch/index_bounds.h"
#include "torch/tensor.h"
#include "torch/version.h"

namespace janus::torch {

using execute::Operands;

namespace {

/// What is added where; `skipped` is an index whose rows are left out. The source may be a view
/// that repeats rows, as the gradient of a mean is, as long as elements of a row are neighbours.
struct Rows {
  at::Tensor indices, source;
  int64_t width, skipped;

  Rows(const at::Tensor& at, const at::Tensor& rows, int64_t elements, int64_t skip = -1)
      : indices(at.contiguous()),
        source(has_rows(rows, elements) ? rows : rows.contiguous()),
        width(elements),
        skipped(skip) {}

 private:
  /// Whether a row is the last dimension.
  static bool has_rows(const at::Tensor& rows, int64_t elements) {
    return rows.dim() > 0 && rows.size(-1) == elements && rows.stride(-1) == 1;
  }
};

/// Where the rows of a tensor begin, one after the other.
class RowStarts {
 public:
  /// The last dimensions are a row's if they lie in order.
  RowStarts(const at::Tensor& source, int64_t width)
      : is_in_order_(source.is_contiguous()),
        width_(width),
        sizes_(source.sizes()),
        strides_(source.strides()),
        index_(sizes_.size()) {}

  int64_t next() {
    const int64_t start = start_;
    if (is_in_order_) {
      start_ += width_;
      return start;
    }
    for (size_t d = sizes_.size() - 1; d-- > 0;) {
      start_ += strides_[d];
      if (++index_[d] < sizes_[d]) break;
      start_ -= strides_[d] * sizes_[d];
      index_[d] = 0;
    }
    return start;
  }

 private:
  const bool is_in_order_;
  const int64_t width_;
  const at::IntArrayRef sizes_, strides_;
  std::vector<int64_t> index_;
  int64_t start_ = 0;
};

/// To rows begin to end of a table.
template <class Element, class Index>
void add_rows(const Rows& rows, Element* table, int64_t begin, int64_t end) {
  const Index* const indices = elements_of<Index>(rows.indices);
  const Element* const source = elements_of<Element>(rows.source);
  const int64_t count = rows.indices.numel();
  RowStarts starts(rows.source, rows.width);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = indices[i];
    const Element* __restrict const from = source + starts.next();
    if (row < begin || row >= end || row == rows.skipped) continue;
    Element* __restrict const to = table + row * rows.width;
    for (int64_t k = 0; k < rows.width; ++k) to[k] += from[k];
  }
}

template <class Element>
void add_rows(const Rows& rows, at::Tensor& table, bool zeroes) {
  Element* const data = table.mutable_data_ptr<Element>();
  const int64_t count = table.size(0), width = rows.width;
  const int64_t work =
      (rows.source.numel() + (zeroes ? table.numel() : 0)) * graph::kInstructionsOfAdded;
  const int64_t parts = thread_count();
  parallel_for(parts, kernels::least_pieces(work, parts), [&](int64_t first, int64_t last) {
    const int64_t begin = count * first / parts, end = count * last / parts;
    if (zeroes) std::fill(data + begin * width, data + end * width, Element{0});
    if (rows.indices.scalar_type() == at::kInt)
      add_rows<Element, int32_t>(rows, data, begin, end);
    else
      add_rows<Element, int64_t>(rows, data, begin, end);
  });
}

/// Adds the rows to a table that lies in order.
void add_rows(const Rows& rows, at::Tensor& table, bool zeroes) {
  if (table.scalar_type() == at::kDouble)
    add_rows<double>(rows, table, zeroes);
  else
    add_rows<float>(rows, table, zeroes);
}

bool is_summed(const graph::Type& type) {
  return type.dtype == graph::DType::f32 || type.dtype == graph::DType::f64;
}

/// Whoever looked the rows up has seen to it that the indices are in the table.
class EmbeddingGradient final : public execute::Operation {
 public:
  EmbeddingGradient(int64_t rows, int64_t padding) : rows_(rows), padding_(padding) {}
  bool can_run_into() const override { return true; }
  void run(const Operands& operands) override {
    Borrowed gradient(operands.in(0));
    at::Tensor out = at::empty({rows_, gradient->size(-1)}, gradient->options());
    add_up(operands, out);
    operands.out(0) = slot_of(std::move(out));
  }
  void run_into(const Operands& operands) override {
    Borrowed out(operands.out(0));
    add_up(operands, *out);
  }

 private:
  void add_up(const Operands& operands, at::Tensor& out) const {
    Borrowed gradient(operands.in(0)), indices(operands.in(1));
    const Rows rows(*indices, *gradient, gradient->size(-1), padding_);
    if (out.is_contiguous()) return add_rows(rows, out, true);
    at::Tensor in_order = at::empty(out.sizes(), out.options());
    add_rows(rows, in_order, true);
    out.copy_(in_order);
  }

  int64_t rows_, padding_;
};

/// Each index in front of the dimension has rows of its own.
template <class Element>
void add_inner(const at::Tensor& indices, const at::Tensor& source, int64_t dim, at::Tensor& out) {
  int64_t outer = 1, width = 1;
  for (int64_t d = 0; d < dim; ++d) outer *= out.size(d);
  for (int64_t d = dim + 1; d < out.dim(); ++d) width *= out.size(d);
  const int64_t size = out.size(dim), count = indices.numel();
  const int64_t* const places = elements_of<int64_t>(indices);
  const Element* const elements = elements_of<Element>(source);
  Element* const results = out.mutable_data_ptr<Element>();
  const int64_t work = outer * count * width * graph::kInstructionsOfAdded;
  parallel_for(outer, kernels::least_pieces(work, outer), [&](int64_t first, int64_t last) {
    for (int64_t o = first; o < last; ++o) {
      const Element* __restrict from = elements + o * count * width;
      Element* const part = results + o * size * width;
      for (int64_t i = 0; i < count; ++i, from += width) {
        Element* __restrict const to = part + places[i] * width;
        for (int64_t k = 0; k < width; ++k) to[k] += from[k];
      }
    }
  });
}

/// To a tensor that lies in order.
void add_in_order(const at::Tensor& indices, const at::Tensor& source, int64_t dim,
                  at::Tensor& out) {
  if (out.numel() == 0 || indices.numel() == 0) return;
  if (dim == 0) return add_rows({indices, source, out.numel() / out.size(0)}, out, false);
  if (out.scalar_type() == at::kDouble)
    add_inner<double>(indices, source.contiguous(), dim, out);
  else
    add_inner<float>(indices, source.contiguous(), dim, out);
}

/// Parts of a tensor, along any dimension. Subscripts may count indices from the end, and their
/// result lies as the tensor does.
class PartsAdded final : public execute::Operation {
 public:
  PartsAdded(size_t dim, size_t index, size_t source, bool is_subscript)
      : dim_(static_cast<int64_t>(dim)),
        index_(index),
        source_(source),
        is_subscript_(is_subscript) {}

  bool can_run_into() const override { return true; }
  bool can_run_in_place() const override { return true; }
  std::span<const size_t> looked_at() const override { return {&index_, 1}; }
  void look(const Operands& operands) override {
    Borrowed self(operands.in(0)), given(operands.in(index_));
    require_inside(*given, self->size(dim_));
  }
  void run(const Operands& operands) override {
    Borrowed self(operands.in(0));
    at::Tensor out =
        is_subscript_ ? at::empty_like(*self) : at::empty(self->sizes(), self->options());
    add(operands, *self, out);
    operands.out(0) = slot_of(std::move(out));
  }
  void run_into(const Operands& operands) override {
    Borrowed self(operands.in(0)), out(operands.out(0));
    add(operands, *self, *out);
  }

 private:
  void add(const Operands& operands, const at::Tensor& self, at::Tensor& out) const {
    Borrowed given(operands.in(index_)), source(operands.in(source_));
    const at::Tensor indices = inside(*given, self.size(dim_));
    if (self.const_data_ptr() != out.const_data_ptr()) out.copy_(self);
    add_parts(indices, *source, dim_, out);
  }

  bool require_inside(const at::Tensor& indices, int64_t size) const {
    return require_between(indices, is_subscript_ ? -size : 0, size);
  }

  /// The indices in order, from 0 to before `size`.
  at::Tensor inside(const at::Tensor& given, int64_t size) const {
    const bool count_from_end = require_inside(given, size);
    const at::Tensor indices = given.to(at::kLong).contiguous();
    return count_from_end ? at::where(indices.lt(0), indices.add(size), indices) : indices;
  }

  int64_t dim_;
  size_t index_, source_;
  bool is_subscript_;
};

std::unique_ptr<execute::Operation> parts_added(const graph::Node& node) {
  const graph::Type& self = node.inputs[0]->type;
  const auto alpha = graph::constant_number(node.inputs[3]);
  if (!is_summed(self) || !alpha || *alpha != 1) return nullptr;
  const int64_t dim = ops::integer_attribute(node.attributes, "dim");
  return std::make_unique<PartsAdded>(static_cast<size_t>(dim < 0 ? dim + self.rank() : dim), 1, 2,
                                      false);
}

/// A subscript of one dimension, with as many values as it has elements.
std::unique_ptr<execute::Operation> subscript_added(const graph::Node& node) {
  const graph::Type& self = node.inputs[0]->type;
  const size_t source = node.inputs.size() - 1;
  if (!is_summed(self) || !ops::flag_attribute(node.attributes, "accumulate")) return nullptr;
  size_t dim = source;
  for (size_t d = 0; d + 1 < source; ++d) {
    if (node.inputs[d + 1]->type.is_none()) continue;
    if (dim != source) return nullptr;
    dim = d;
  }
  const graph::Shape& index = node.inputs[dim + 1]->type.shape;
  graph::Shape expected(self.shape.begin(), self.shape.begin() + static_cast<int64_t>(dim));
  expected.insert(expected.end(), index.begin(), index.end());
  expected.insert(expected.end(), self.shape.begin() + static_cast<int64_t>(dim) + 1,
                  self.shape.end());
  if (node.inputs[source]->type.shape != expected) return nullptr;
  return std::make_unique<PartsAdded>(dim, dim + 1, source, true);
}

}  // namespace

void add_parts(const at::Tensor& indices, const at::Tensor& source, int64_t dim, at::Tensor& out) {
  if (out.is_contiguous()) return add_in_order(indices, source, dim, out);
  at::Tensor in_order = out.contiguous();
  add_in_order(indices, source, dim, in_order);
  out.copy_(in_order);
}

std::unique_ptr<execute::Operation> bind_row_sums(const graph::Node& node,
                                                  const execute::SymbolLookup& symbols) {
  if (node.op == &op::index_add) return parts_added(node);
  if (node.op == &op::index_put) return subscript_added(node);
  if (node.op != &op::embedding_dense_backward || !is_summed(node.inputs[0]->type) ||
      ops::flag_attribute(node.attributes, "scale_grad_by_freq"))
    return nullptr;
  const auto rows = ops::dim_attribute(node.attributes, "num_weights").evaluate(symbols);
  const auto padding = ops::dim_attribute(node.attributes, "padding_idx").evaluate(symbols);
  TORCHJANUS_CHECK(rows && padding, "embedding_dense_backward: the number of rows is not known");
  return std::make_unique<EmbeddingGradient>(*rows, *padding);
}

}  // namespace janus::torch
