// See batch_norm.h.
//
// ATen adds up each channel's elements one after the other, in double precision; these loops do the
// same with many lanes, and write into given memory. Types and layouts that they do not know are
// left to ATen.
#include "torch/batch_norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cmath>

#include "graph/op.h"
#include "ops/list.h"
#include "torch/boxed_operation.h"
#include "torch/channel_loops.h"
#include "torch/tensor.h"

namespace janus::torch {

using execute::Operands;
using execute::Slot;

namespace {

/// How the loops see a tensor with channels in dimension 1; nullopt if they can't.
std::optional<ChannelShape> channel_shape(const at::Tensor& tensor) {
  if (tensor.dim() < 2 || tensor.numel() == 0) return std::nullopt;
  ChannelShape shape{.outer = tensor.size(0), .channels = tensor.size(1), .inner = 1};
  const int64_t inner = tensor.numel() / (shape.outer * shape.channels);
  if (tensor.is_contiguous()) {
    shape.inner = inner;
    return shape;
  }
  const bool channels_last =
      (tensor.dim() == 4 && tensor.is_contiguous(at::MemoryFormat::ChannelsLast)) ||
      (tensor.dim() == 5 && tensor.is_contiguous(at::MemoryFormat::ChannelsLast3d));
  if (!channels_last) return std::nullopt;
  shape.outer *= inner;
  return shape;
}

bool is_vector(const Slot& slot, const at::Tensor& like) {
  if (!slot.is_tensor()) return slot.is_none();
  const at::TensorImpl* impl = impl_of(slot);
  return impl->dtype() == like.dtype() && impl->dim() == 1 &&
         impl->is_contiguous(at::MemoryFormat::Contiguous) && impl->size(0) == like.size(1);
}

bool is_known_type(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble;
}

bool is_like(const Slot& slot, const at::Tensor& other) {
  const at::TensorImpl* impl = impl_of(slot);
  return impl->dtype() == other.dtype() && impl->sizes() == other.sizes() &&
         impl->strides() == other.strides();
}

double number(const Slot& slot) {
  return slot.kind() == Slot::Kind::f64 ? slot.f64() : static_cast<double>(slot.i64());
}

template <class T>
T* data(const Slot& slot) {
  return slot.is_tensor() ? static_cast<T*>(impl_of(slot)->mutable_data()) : nullptr;
}

/// The operators' common part: results made by ATen are copied if they are wanted elsewhere.
class ChannelOperation : public execute::Operation {
 public:
  ChannelOperation(const graph::Node& node, const execute::SymbolLookup& symbols)
      : general_(bind_boxed(node, symbols)) {
    for (const graph::Value* output : node.outputs) wanted_.push_back(!output->type.is_none());
  }

  bool can_run_into() const override { return true; }

  void run_into(const Operands& operands) override {
    if (compute(operands)) return;
    std::vector<Slot> slots;
    for (const uint32_t input : operands.inputs) slots.push_back(operands.slots[input]);
    std::vector<uint32_t> inputs(operands.inputs.size()), outputs(operands.outputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = static_cast<uint32_t>(i);
    for (size_t i = 0; i < outputs.size(); ++i) {
      outputs[i] = static_cast<uint32_t>(inputs.size() + i);
    }
    slots.resize(inputs.size() + outputs.size());
    general_->run({slots.data(), inputs, outputs});
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (wanted_[i]) Borrowed(operands.out(i))->copy_(*Borrowed(slots[outputs[i]]));
    }
  }

 protected:
  /// False if the loops can't.
  virtual bool compute(const Operands& operands) = 0;

  std::unique_ptr<execute::Operation> general_;
  std::vector<bool> wanted_;
  ChannelSums sums_;
};

/// (input, weight, bias, running mean, running variance, momentum, eps) ->
/// (output, mean, 1 / deviation, new running mean, new running variance)
class BatchNormForward final : public ChannelOperation {
 public:
  using ChannelOperation::ChannelOperation;

  void run(const Operands& operands) override {
    Borrowed input(operands.in(0));
    if (!can_compute(operands, *input)) return general_->run(operands);
    operands.out(0) = slot_of(at::empty_like(*input, input->suggest_memory_format()));
    for (size_t i = 1; i < 5; ++i) {
      operands.out(i) = slot_of(at::empty({input->size(1)}, input->options()));
    }
    run_into(operands);
  }

 private:
  static bool can_compute(const Operands& operands, const at::Tensor& input) {
    if (!is_known_type(input) || !channel_shape(input)) return false;
    for (size_t i = 1; i < 5; ++i) {
      if (!is_vector(operands.in(i), input)) return false;
    }
    return operands.in(3).is_tensor() && operands.in(4).is_tensor();
  }

  bool compute(const Operands& operands) override {
    Borrowed input(operands.in(0));
    if (!can_compute(operands, *input) || !is_like(operands.out(0), *input)) return false;
    const ChannelShape shape = *channel_shape(*input);
    if (input->scalar_type() == at::kFloat) {
      normalise<float>(operands, shape);
    } else {
      normalise<double>(operands, shape);
    }
    return true;
  }

  template <class T>
  void normalise(const Operands& operands, const ChannelShape& shape) {
    const auto channels = static_cast<size_t>(shape.channels);
    const T* x = data<T>(operands.in(0));
    std::vector<T> means(channels), scales(channels), offsets(channels);
    std::vector<double> squares = moments(x, shape, means);
    const double momentum = number(operands.in(5)), eps = number(operands.in(6));
    const auto count = static_cast<double>(shape.count());
    const T *weight = data<T>(operands.in(1)), *bias = data<T>(operands.in(2));
    const auto blend = [&](double now, T before) {
      return static_cast<T>(momentum * now + (1 - momentum) * static_cast<double>(before));
    };
    for (size_t c = 0; c < channels; ++c) {
      const auto squared = static_cast<double>(static_cast<T>(squares[c]));
      const auto deviation = static_cast<T>(1 / std::sqrt(squared / count + eps));
      data<T>(operands.out(1))[c] = means[c];
      data<T>(operands.out(2))[c] = deviation;
      data<T>(operands.out(3))[c] =
          blend(static_cast<double>(means[c]), data<T>(operands.in(3))[c]);
      data<T>(operands.out(4))[c] = blend(squared / (count - 1), data<T>(operands.in(4))[c]);
      scales[c] = weight == nullptr ? deviation : deviation * weight[c];
      offsets[c] = (bias == nullptr ? T{0} : bias[c]) - means[c] * scales[c];
    }
    scale_channels(x, shape, scales.data(), offsets.data(), data<T>(operands.out(0)));
  }

  /// The means, and the sums of squared differences from them. Sums over differences from some
  /// element of the channel lose nothing that single precision would show; double precision takes
  /// a second look, with the mean known.
  template <class T>
  std::vector<double> moments(const T* x, const ChannelShape& shape, std::vector<T>& means) {
    const auto count = static_cast<double>(shape.count());
    for (size_t c = 0; c < means.size(); ++c) means[c] = x[static_cast<int64_t>(c) * shape.inner];
    std::vector<double> squares(means.size());
    for (int round = 0; round < (sizeof(T) == sizeof(double) ? 2 : 1); ++round) {
      sum_squares(x, shape, means.data(), sums_);
      for (size_t c = 0; c < means.size(); ++c) {
        const double distance = sums_.first[c] / count;
        squares[c] = std::max(sums_.second[c] - distance * sums_.first[c], 0.0);
        means[c] = static_cast<T>(static_cast<double>(means[c]) + distance);
      }
    }
    return squares;
  }
};

/// (output's gradient, input, weight, running mean, running variance, mean, 1 / deviation, eps) ->
/// gradients of (input, weight, bias), those that are wanted
class BatchNormBackward final : public ChannelOperation {
 public:
  using ChannelOperation::ChannelOperation;

  void run(const Operands& operands) override {
    Borrowed input(operands.in(1));
    if (!can_compute(operands, *input)) return general_->run(operands);
    for (size_t i = 0; i < 3; ++i) {
      operands.out(i) = !wanted_[i] ? Slot::none()
                        : i == 0 ? slot_of(at::empty_like(*input, input->suggest_memory_format()))
                                 : slot_of(at::empty({input->size(1)}, input->options()));
    }
    run_into(operands);
  }

 private:
  static bool can_compute(const Operands& operands, const at::Tensor& input) {
    return is_known_type(input) && channel_shape(input) && is_like(operands.in(0), input) &&
           is_vector(operands.in(2), input) && operands.in(5).is_tensor() &&
           is_vector(operands.in(5), input) && operands.in(6).is_tensor() &&
           is_vector(operands.in(6), input);
  }

  bool compute(const Operands& operands) override {
    Borrowed input(operands.in(1));
    if (!can_compute(operands, *input)) return false;
    if (wanted_[0] && !is_like(operands.out(0), *input)) return false;
    const ChannelShape shape = *channel_shape(*input);
    if (input->scalar_type() == at::kFloat) {
      differentiate<float>(operands, shape);
    } else {
      differentiate<double>(operands, shape);
    }
    return true;
  }

  template <class T>
  void differentiate(const Operands& operands, const ChannelShape& shape) {
    const auto channels = static_cast<size_t>(shape.channels);
    const T *dy = data<T>(operands.in(0)), *x = data<T>(operands.in(1));
    const T *weight = data<T>(operands.in(2)), *mean = data<T>(operands.in(5));
    const T* deviation = data<T>(operands.in(6));
    sum_products(dy, x, shape, mean, sums_);
    const auto count = static_cast<double>(shape.count());
    std::vector<T> averages(channels), slopes(channels), scales(channels);
    for (size_t c = 0; c < channels; ++c) {
      const auto one_over = static_cast<double>(deviation[c]);
      averages[c] = static_cast<T>(sums_.first[c] / count);
      slopes[c] = static_cast<T>(sums_.second[c] * one_over * one_over / count);
      scales[c] = weight == nullptr ? deviation[c] : deviation[c] * weight[c];
      if (wanted_[1]) data<T>(operands.out(1))[c] = static_cast<T>(sums_.second[c] * one_over);
      if (wanted_[2]) data<T>(operands.out(2))[c] = static_cast<T>(sums_.first[c]);
    }
    if (!wanted_[0]) return;
    channel_gradient(dy, x, shape, {averages.data(), mean, slopes.data(), scales.data()},
                     data<T>(operands.out(0)));
  }
};

}  // namespace

std::unique_ptr<execute::Operation> bind_batch_norm(const graph::Node& node,
                                                    const execute::SymbolLookup& symbols) {
  if (node.op == &op::batch_norm_train) return std::make_unique<BatchNormForward>(node, symbols);
  if (node.op == &op::batch_norm_backward) {
    return std::make_unique<BatchNormBackward>(node, symbols);
  }
  return nullptr;
}

}  // namespace janus::torch
