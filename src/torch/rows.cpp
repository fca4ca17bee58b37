// Rows are short most of the time, as those of an embedding are: what matters is that nothing is
// made for them but the result.
#include "torch/rows.h"

#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <cstring>

#include "base/check.h"
#include "base/policy.h"
#include "graph/op.h"
#include "ops/list.h"
#include "torch/boxed_operation.h"
#include "torch/tensor.h"
#include "torch/version.h"

namespace janus::torch {

using execute::Operands;
using execute::Slot;

namespace {

int64_t position(const Slot& index, int64_t rows) {
  const int64_t row = index.i64();
  TORCH_CHECK_INDEX(row >= -rows && row < rows, "index ", row, " is out of bounds for dimension 0 ",
                    "with size ", rows);
  return row < 0 ? row + rows : row;
}

/// Copies elements between tensors of one dtype and the same sizes.
void copy(at::Tensor& to, const at::Tensor& from) {
  if (to.is_contiguous() && from.is_contiguous()) {
    if (to.nbytes() > 0) std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), to.nbytes());
  } else {
    to.copy_(from);
  }
}

class Row final : public execute::Operation {
 public:
  bool can_run_into() const override { return true; }
  void run(const Operands& operands) override {
    Borrowed tensor(operands.in(0));
    at::Tensor out = at::empty(tensor->sizes().slice(1), tensor->options());
    take(*tensor, operands.in(1), out);
    operands.out(0) = slot_of(std::move(out));
  }
  void run_into(const Operands& operands) override {
    Borrowed tensor(operands.in(0)), out(operands.out(0));
    take(*tensor, operands.in(1), *out);
  }

 private:
  static void take(const at::Tensor& tensor, const Slot& index, at::Tensor& out) {
    const int64_t row = position(index, tensor.size(0));
    if (!tensor.is_contiguous() || !out.is_contiguous()) {
      out.copy_(tensor.select(0, row));
      return;
    }
    const auto bytes = static_cast<int64_t>(out.nbytes());
    if (bytes > 0)
      std::memcpy(out.mutable_data_ptr(),
                  static_cast<const char*>(tensor.const_data_ptr()) + row * bytes,
                  static_cast<size_t>(bytes));
  }
};

class RowBackward final : public execute::Operation {
 public:
  explicit RowBackward(int64_t rows) : rows_(rows) {}
  bool can_run_into() const override { return true; }
  void run(const Operands& operands) override {
    Borrowed gradient(operands.in(0));
    std::vector<int64_t> sizes = gradient->sizes().vec();
    sizes.insert(sizes.begin(), rows_);
    at::Tensor out = at::zeros(sizes, gradient->options());
    at::Tensor row = out.select(0, position(operands.in(1), rows_));
    copy(row, *gradient);
    operands.out(0) = slot_of(std::move(out));
  }
  void run_into(const Operands& operands) override {
    Borrowed gradient(operands.in(0)), out(operands.out(0));
    const int64_t row = position(operands.in(1), rows_);
    if (out->is_contiguous() && gradient->is_contiguous()) {
      const size_t bytes = gradient->nbytes();
      char* const data = static_cast<char*>(out->mutable_data_ptr());
      if (bytes == 0) return;
      std::memset(data, 0, out->nbytes());
      std::memcpy(data + static_cast<size_t>(row) * bytes, gradient->const_data_ptr(), bytes);
      return;
    }
    out->zero_();
    out->select(0, row).copy_(*gradient);
  }

 private:
  int64_t rows_;
};

class AddToRow final : public execute::Operation {
 public:
  bool can_run_into() const override { return true; }
  bool can_run_in_place() const override { return true; }
  void run(const Operands& operands) override {
    Borrowed tensor(operands.in(0));
    at::Tensor out = at::empty(tensor->sizes(), tensor->options());
    copy(out, *tensor);
    add(out, operands);
    operands.out(0) = slot_of(std::move(out));
  }
  void run_into(const Operands& operands) override {
    Borrowed tensor(operands.in(0)), out(operands.out(0));
    if (!share_memory(operands.in(0), operands.out(0))) copy(*out, *tensor);
    add(*out, operands);
  }

 private:
  static void add(at::Tensor& out, const Operands& operands) {
    Borrowed other(operands.in(1));
    const int64_t row = position(operands.in(2), out.size(0));
    if (out.scalar_type() != at::kFloat || !out.is_contiguous() || !other->is_contiguous()) {
      out.select(0, row).add_(*other);
      return;
    }
    const int64_t count = other->numel();
    float* __restrict to = out.mutable_data_ptr<float>() + row * count;
    const float* __restrict from = elements_of<float>(*other);
    for (int64_t i = 0; i < count; ++i) to[i] += from[i];
  }
};

class Cat final : public execute::Operation {
 public:
  explicit Cat(std::unique_ptr<execute::Operation> general) : general_(std::move(general)) {}
  bool can_run_into() const override { return general_->can_run_into(); }
  void run(const Operands& operands) override { general_->run(operands); }
  void run_into(const Operands& operands) override {
    if (!copy_parts(operands)) general_->run_into(operands);
  }

 private:
  /// False if elements would have to be converted or do not lie one behind the other.
  static bool copy_parts(const Operands& operands) {
    Borrowed out(operands.out(0));
    if (!out->is_contiguous() || out->nbytes() > policy::kLargestJoined) return false;
    for (size_t i = 0; i < operands.inputs.size(); ++i) {
      if (!operands.in(i).is_tensor()) return false;
      Borrowed part(operands.in(i));
      if (!part->is_contiguous() || part->scalar_type() != out->scalar_type()) return false;
    }
    char* data = static_cast<char*>(out->mutable_data_ptr());
    for (size_t i = 0; i < operands.inputs.size(); ++i) {
      Borrowed part(operands.in(i));
      const size_t bytes = part->nbytes();
      if (bytes > 0) std::memcpy(data, part->const_data_ptr(), bytes);
      data += bytes;
    }
    return true;
  }

  std::unique_ptr<execute::Operation> general_;
};

}  // namespace

std::unique_ptr<execute::Operation> bind_row(const graph::Node& node,
                                             const execute::SymbolLookup& symbols) {
  if (node.op == &op::row) return std::make_unique<Row>();
  if (node.op == &op::add_to_row) return std::make_unique<AddToRow>();
  if (node.op == &op::cat && node.attributes.get_or<int64_t>("dim", 0) == 0)
    return std::make_unique<Cat>(bind_boxed(node, symbols));
  if (node.op != &op::row_backward) return nullptr;
  const auto rows = node.output()->type.shape.front().evaluate(symbols);
  TORCHJANUS_CHECK(rows, "row_backward: the number of rows is not known");
  return std::make_unique<RowBackward>(*rows);
}

}  // namespace janus::torch
