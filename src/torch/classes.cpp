// See classes.h.
#include "torch/classes.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gather.h>

#include "base/check.h"
#include "graph/op.h"
#include "ops/attributes.h"
#include "ops/list.h"
#include "torch/tensor.h"
#include "torch/version.h"

namespace janus::torch {

using execute::Operands;

namespace {

class Position final : public execute::Operation {
 public:
  explicit Position(int64_t dim) : dim_(dim) {}
  void run(const Operands& operands) override {
    Borrowed tensor(operands.in(0));
    std::vector<int64_t> sizes(static_cast<size_t>(tensor->dim()), 1);
    const int64_t dim = dim_ < 0 ? dim_ + tensor->dim() : dim_;
    const int64_t count = tensor->dim() == 0 ? 1 : tensor->size(dim);
    if (!sizes.empty()) sizes[static_cast<size_t>(dim)] = count;
    const at::Tensor along = at::arange(count, at::kLong).reshape(sizes);
    operands.out(0) = slot_of(along.expand(tensor->sizes()).clone());
  }

 private:
  int64_t dim_;
};

/// At the index, or at the end that it lies beyond.
at::Tensor picked(const at::Tensor& tensor, const at::Tensor& index, int64_t dim) {
  return tensor.gather(dim, index.clamp(0, tensor.size(dim) - 1));
}

class Pick final : public execute::Operation {
 public:
  explicit Pick(int64_t dim) : dim_(dim) {}
  void run(const Operands& operands) override {
    Borrowed tensor(operands.in(0)), index(operands.in(1));
    operands.out(0) = slot_of(picked(*tensor, *index, dim_));
  }

 private:
  int64_t dim_;
};

class ClassLoss final : public execute::Operation {
 public:
  explicit ClassLoss(int64_t dim) : dim_(dim) {}
  void run(const Operands& operands) override {
    Borrowed scores(operands.in(0)), target(operands.in(1));
    const at::Tensor maximum = scores->amax(dim_, true);
    const at::Tensor shifted = *scores - maximum;
    operands.out(0) = slot_of(picked(shifted, *target, dim_));
    operands.out(1) = slot_of(maximum);
    operands.out(2) = slot_of(shifted.exp().sum(dim_, true));
  }

 private:
  int64_t dim_;
};

class CountClasses final : public execute::Operation {
 public:
  CountClasses(int64_t classes, int64_t ignored) : classes_(classes), ignored_(ignored) {}
  void run(const Operands& operands) override {
    Borrowed given(operands.in(0));
    const at::Tensor target = given->contiguous();
    const int64_t* const elements = elements_of<int64_t>(target);
    int64_t count = 0;
    for (int64_t i = 0; i < target.numel(); ++i) {
      if (elements[i] == ignored_) continue;
      TORCH_CHECK_INDEX(elements[i] >= 0 && elements[i] < classes_, "Target ", elements[i],
                        " is out of bounds.");
      ++count;
    }
    at::Tensor out = at::empty({}, at::kLong);
    *out.mutable_data_ptr<int64_t>() = count;
    operands.out(0) = slot_of(std::move(out));
  }

 private:
  int64_t classes_, ignored_;
};

}  // namespace

std::unique_ptr<execute::Operation> bind_classes(const graph::Node& node,
                                                 const execute::SymbolLookup& symbols) {
  const graph::Attributes& attributes = node.attributes;
  if (node.op == &op::position)
    return std::make_unique<Position>(ops::integer_attribute(attributes, "dim"));
  if (node.op == &op::pick)
    return std::make_unique<Pick>(ops::integer_attribute(attributes, "dim"));
  if (node.op == &op::class_loss)
    return std::make_unique<ClassLoss>(ops::integer_attribute(attributes, "dim"));
  if (node.op != &op::count_classes) return nullptr;
  const auto classes = ops::dim_attribute(attributes, "classes").evaluate(symbols);
  TORCHJANUS_CHECK(classes, "count_classes: the number of classes is not known");
  return std::make_unique<CountClasses>(*classes,
                                        ops::integer_attribute(attributes, "ignore_index"));
}

}  // namespace janus::torch
