// See element_writes.h. ATen's operators in place: what differs is that the tensor need not be
// copied where its old contents are not needed, and that indices can be looked at before anything
// is written.
#include "torch/element_writes.h"

#include <ATen/core/List.h>
#include <ATen/ops/index_put.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/scatter_add.h>

#include <vector>

#include "base/check.h"
#include "graph/op.h"
#include "ops/attributes.h"
#include "ops/list.h"
#include "ops/shape_rules.h"
#include "torch/index_bounds.h"
#include "torch/row_sums.h"
#include "torch/tensor.h"

namespace janus::torch {

using execute::Operands;

namespace {

/// What the operators share: a copy where the result is not to be in the tensor's place.
class Writes : public execute::Operation {
 public:
  /// `format`: how a result of its own lies.
  Writes(std::vector<size_t> looked_at, at::MemoryFormat format)
      : looked_at_(std::move(looked_at)), format_(format) {}
  bool can_run_into() const override { return true; }
  bool can_run_in_place() const override { return true; }
  std::span<const size_t> looked_at() const override { return looked_at_; }
  void run(const Operands& operands) override {
    Borrowed self(operands.in(0));
    at::Tensor out = self->clone(format_);
    write(operands, out);
    operands.out(0) = slot_of(std::move(out));
  }
  void run_into(const Operands& operands) override {
    Borrowed self(operands.in(0)), out(operands.out(0));
    if (!share_memory(operands.in(0), operands.out(0))) out->copy_(*self);
    write(operands, *out);
  }

 protected:
  virtual void write(const Operands& operands, at::Tensor& out) const = 0;

 private:
  std::vector<size_t> looked_at_;
  at::MemoryFormat format_;
};

class Scattered final : public Writes {
 public:
  Scattered(int64_t dim, bool adds)
      : Writes({1}, at::MemoryFormat::Contiguous), dim_(dim), adds_(adds) {}
  void look(const Operands& operands) override {
    Borrowed self(operands.in(0)), index(operands.in(1));
    require_between(*index, 0, size_of(*self));
  }

 private:
  void write(const Operands& operands, at::Tensor& out) const override {
    Borrowed index(operands.in(1)), source(operands.in(2));
    if (!adds_)
      out.scatter_(dim_, *index, *source);
    else if (moves_parts(*index, *source, out))
      add_lines(*index, *source, out);
    else
      out.scatter_add_(dim_, *index, *source);
  }

  /// Whether whole parts are added, as an index that was expanded says.
  bool moves_parts(const at::Tensor& index, const at::Tensor& source, const at::Tensor& out) const {
    const bool is_summed = out.scalar_type() == at::kFloat || out.scalar_type() == at::kDouble;
    if (!is_summed || out.dim() < 2 || index.numel() == 0 || index.sizes() != source.sizes())
      return false;
    for (int64_t d = 0; d < out.dim(); ++d)
      if (d != dim_ && (index.stride(d) != 0 || index.size(d) != out.size(d))) return false;
    return true;
  }

  /// By one index of each part.
  void add_lines(const at::Tensor& index, const at::Tensor& source, at::Tensor& out) const {
    at::Tensor line = index;
    for (int64_t d = index.dim(); d-- > 0;)
      if (d != dim_) line = line.select(d, 0);
    line = line.contiguous();
    require_between(line, 0, size_of(out));
    add_parts(line, source, dim_, out);
  }

  int64_t size_of(const at::Tensor& tensor) const {
    return tensor.dim() == 0 ? 1 : tensor.size(dim_);
  }

  int64_t dim_;
  bool adds_;
};

class Subscripted final : public Writes {
 public:
  Subscripted(std::vector<size_t> indexed, size_t values, bool adds)
      : Writes(indexed, at::MemoryFormat::Preserve),
        indexed_(std::move(indexed)),
        values_(values),
        adds_(adds) {}
  void look(const Operands& operands) override {
    Borrowed self(operands.in(0));
    for (const size_t input : indexed_) {
      Borrowed index(operands.in(input));
      const int64_t size = self->size(static_cast<int64_t>(input) - 1);
      require_between(*index, -size, size);
    }
  }

 private:
  void write(const Operands& operands, at::Tensor& out) const override {
    c10::List<std::optional<at::Tensor>> indices;
    for (size_t input = 1; input < values_; ++input) {
      if (operands.in(input).is_tensor())
        indices.push_back(tensor_of(operands.in(input)));
      else
        indices.push_back(std::nullopt);
    }
    Borrowed values(operands.in(values_));
    out.index_put_(indices, *values, adds_);
  }

  std::vector<size_t> indexed_;
  size_t values_;
  bool adds_;
};

}  // namespace

std::unique_ptr<execute::Operation> bind_element_writes(const graph::Node& node) {
  if (node.op == &op::scatter_add || node.op == &op::scatter)
    return std::make_unique<Scattered>(
        ops::wrap_dim(ops::integer_attribute(node.attributes, "dim"), node.output()->type.rank()),
        node.op == &op::scatter_add);
  if (node.op != &op::index_put) return nullptr;
  std::vector<size_t> indexed;
  const size_t values = node.inputs.size() - 1;
  for (size_t input = 1; input < values; ++input)
    if (node.inputs[input]->type.is_tensor()) indexed.push_back(input);
  return std::make_unique<Subscripted>(std::move(indexed), values,
                                       ops::flag_attribute(node.attributes, "accumulate"));
}

}  // namespace janus::torch
