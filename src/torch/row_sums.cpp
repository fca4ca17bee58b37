// See row_sums.h. ATen makes an operator of each row, or looks up in a table of counts for each.
// Rows are added in the order of their indices, as ATen does, so sums are its bit for bit; threads
// have parts of the table each, and go over all indices.
#include "torch/row_sums.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "base/check.h"
#include "base/thread_pool.h"
#include "graph/constant.h"
#include "graph/op.h"
#include "ops/attributes.h"
#include "ops/list.h"
#include "torch/operators.h"
#include "torch/tensor.h"

namespace janus::torch {

using execute::Operands;

namespace {

/// Elements that outweigh waking a thread, which then looks at all indices.
constexpr int64_t elements_per_thread = 1 << 16;

/// What is added where; `skipped` is an index whose rows are left out.
struct Rows {
  at::Tensor indices, source;
  int64_t skipped = -1;

  Rows(const at::Tensor& at, const at::Tensor& rows, int64_t skip = -1)
      : indices(at.contiguous()), source(rows.contiguous()), skipped(skip) {}
};

/// To rows begin to end of a table that has `width` elements a row.
template <class Element, class Index>
void add_rows(const Rows& rows, Element* table, int64_t width, int64_t begin, int64_t end) {
  const Index* const indices = rows.indices.const_data_ptr<Index>();
  const Element* const source = rows.source.const_data_ptr<Element>();
  const int64_t count = rows.indices.numel();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = indices[i];
    if (row < begin || row >= end || row == rows.skipped) continue;
    Element* __restrict const to = table + row * width;
    const Element* __restrict const from = source + i * width;
    for (int64_t k = 0; k < width; ++k) to[k] += from[k];
  }
}

template <class Element>
void add_rows(const Rows& rows, at::Tensor& table, bool zeroes) {
  Element* const data = table.mutable_data_ptr<Element>();
  const int64_t count = table.size(0), width = count == 0 ? 0 : table.numel() / count;
  const int64_t work = rows.source.numel() + (zeroes ? table.numel() : 0);
  const int64_t parts = std::clamp<int64_t>(work / elements_per_thread, 1, thread_count());
  parallel_for(parts, 1, [&](int64_t first, int64_t last) {
    const int64_t begin = count * first / parts, end = count * last / parts;
    if (zeroes) std::fill(data + begin * width, data + end * width, Element{0});
    if (rows.indices.scalar_type() == at::kInt)
      add_rows<Element, int32_t>(rows, data, width, begin, end);
    else
      add_rows<Element, int64_t>(rows, data, width, begin, end);
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
    const Rows rows(*indices, *gradient, padding_);
    if (out.is_contiguous()) return add_rows(rows, out, true);
    at::Tensor in_order = at::empty(out.sizes(), out.options());
    add_rows(rows, in_order, true);
    out.copy_(in_order);
  }

  int64_t rows_, padding_;
};

class IndexAdd final : public execute::Operation {
 public:
  bool can_run_into() const override { return true; }
  bool can_run_in_place() const override { return true; }
  void run(const Operands& operands) override {
    Borrowed self(operands.in(0));
    at::Tensor out = at::empty(self->sizes(), self->options());
    add(operands, *self, out);
    operands.out(0) = slot_of(std::move(out));
  }
  void run_into(const Operands& operands) override {
    Borrowed self(operands.in(0)), out(operands.out(0));
    add(operands, *self, *out);
  }

 private:
  static void add(const Operands& operands, const at::Tensor& self, at::Tensor& out) {
    Borrowed indices(operands.in(1)), source(operands.in(2));
    const Rows rows(*indices, *source);
    require_inside(rows.indices, self.size(0));
    if (self.unsafeGetTensorImpl() != out.unsafeGetTensorImpl()) out.copy_(self);
    if (out.is_contiguous()) return add_rows(rows, out, false);
    at::Tensor in_order = out.contiguous();
    add_rows(rows, in_order, false);
    out.copy_(in_order);
  }

  static void require_inside(const at::Tensor& indices, int64_t count) {
    const auto look = [&](const auto* first) {
      for (int64_t i = 0; i < indices.numel(); ++i)
        TORCH_CHECK_INDEX(first[i] >= 0 && first[i] < count, "index out of range in self");
    };
    if (indices.scalar_type() == at::kInt)
      look(indices.const_data_ptr<int32_t>());
    else
      look(indices.const_data_ptr<int64_t>());
  }
};

bool adds_whole_rows(const graph::Node& node) {
  const graph::Type& self = node.inputs[0]->type;
  const int64_t dim = ops::integer_attribute(node.attributes, "dim");
  const auto alpha = graph::constant_number(node.inputs[3]);
  return is_summed(self) && (dim == 0 || dim == -self.rank()) && alpha && *alpha == 1;
}

}  // namespace

std::unique_ptr<execute::Operation> bind_row_sums(const graph::Node& node,
                                                  const execute::SymbolLookup& symbols) {
  if (node.op == &op::index_add && adds_whole_rows(node)) return std::make_unique<IndexAdd>();
  if (node.op != &op::embedding_dense_backward || !is_summed(node.inputs[0]->type) ||
      ops::flag_attribute(node.attributes, "scale_grad_by_freq"))
    return nullptr;
  const auto rows = ops::dim_attribute(node.attributes, "num_weights").evaluate(symbols);
  const auto padding = ops::dim_attribute(node.attributes, "padding_idx").evaluate(symbols);
  TORCHJANUS_CHECK(rows && padding, "embedding_dense_backward: the number of rows is not known");
  return std::make_unique<EmbeddingGradient>(*rows, *padding);
}

}  // namespace janus::torch
