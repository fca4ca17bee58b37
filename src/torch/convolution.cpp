// See convolution.h. The libraries' convolutions bring filters into an order of their own and their
// gradients back, which costs several times the product itself where images are small.
#include "torch/convolution.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/slice.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <array>

#include "graph/op.h"
#include "ops/attributes.h"
#include "ops/list.h"
#include "torch/operators.h"
#include "torch/products.h"
#include "torch/tensor.h"

namespace janus::torch {

using execute::Operands;

namespace {

constexpr auto channels_last = at::MemoryFormat::ChannelsLast;

at::Tensor new_image(at::IntArrayRef sizes, const at::Tensor& like) {
  return at::empty(sizes, like.options().memory_format(channels_last));
}

/// Pixels by channels; of a filter, results by channels.
at::Tensor rows_of(const at::Tensor& image) {
  const int64_t channels = image.size(1);
  return image.as_strided({image.numel() / channels, channels}, {channels, 1});
}

class PixelConvolution : public execute::Operation {
 public:
  PixelConvolution(const graph::Node& node, const execute::SymbolLookup& symbols)
      : general_(bind_boxed(node, symbols)) {
    const graph::Shape stride = ops::list_attribute(node.attributes, "stride", 2);
    for (size_t i = 0; i < 2; ++i) stride_[i] = stride[i].evaluate(symbols).value();
  }

  bool can_run_into() const override { return general_->can_run_into(); }
  void run_into(const Operands& operands) override { general_->run_into(operands); }

 protected:
  static bool fits(const at::Tensor& image) {
    return image.dim() == 4 && image.scalar_type() == at::kFloat && image.numel() > 0 &&
           image.is_contiguous(channels_last) && image.suggest_memory_format() == channels_last;
  }

  static bool is_pixel(const at::Tensor& filter) {
    return filter.dim() == 4 && filter.size(2) == 1 && filter.size(3) == 1 &&
           filter.scalar_type() == at::kFloat && filter.is_contiguous(channels_last);
  }

  bool skips() const { return stride_ != std::array<int64_t, 2>{1, 1}; }

  /// The pixels that the filter is applied to.
  at::Tensor seen(const at::Tensor& image) const {
    return image.slice(2, 0, image.size(2), stride_[0]).slice(3, 0, image.size(3), stride_[1]);
  }

  at::Tensor seen_rows(const at::Tensor& image) const {
    return rows_of(skips() ? seen(image).contiguous(channels_last) : image);
  }

  std::unique_ptr<execute::Operation> general_;

 private:
  std::array<int64_t, 2> stride_{};
};

class Forward final : public PixelConvolution {
 public:
  using PixelConvolution::PixelConvolution;

  void run(const Operands& operands) override {
    Borrowed image(operands.in(0)), filter(operands.in(1));
    if (!fits(*image) || !is_pixel(*filter)) return general_->run(operands);
    const at::Tensor bias = operands.in(2).is_tensor() ? tensor_of(operands.in(2)) : at::Tensor();
    const at::Tensor view = seen(*image);
    at::Tensor result =
        new_image({view.size(0), filter->size(0), view.size(2), view.size(3)}, *image);
    at::Tensor rows = rows_of(result);
    multiply(seen_rows(*image), rows_of(*filter).t(), bias, rows);
    operands.out(0) = slot_of(std::move(result));
  }
};

class Backward final : public PixelConvolution {
 public:
  Backward(const graph::Node& node, const execute::SymbolLookup& symbols)
      : PixelConvolution(node, symbols),
        wanted_(ops::mask_attribute(node.attributes, "output_mask")) {}

  void run(const Operands& operands) override {
    Borrowed gradient(operands.in(0)), image(operands.in(1)), filter(operands.in(2));
    if (!fits(*gradient) || !fits(*image) || !is_pixel(*filter)) return general_->run(operands);
    for (size_t i = 0; i < 3; ++i) operands.out(i) = execute::Slot::none();
    const at::Tensor rows = rows_of(*gradient);
    if (wanted_[0]) operands.out(0) = slot_of(image_gradient(rows, *image, *filter));
    if (wanted_[1]) {
      at::Tensor result = new_image(filter->sizes(), *filter);
      at::Tensor matrix = rows_of(result);
      multiply(rows.t(), seen_rows(*image), {}, matrix);
      operands.out(1) = slot_of(std::move(result));
    }
    if (wanted_[2]) operands.out(2) = slot_of(rows.sum(0));
  }

 private:
  at::Tensor image_gradient(const at::Tensor& rows, const at::Tensor& image,
                            const at::Tensor& filter) const {
    at::Tensor result = new_image(image.sizes(), image);
    at::Tensor part = skips() ? new_image(seen(image).sizes(), image) : result;
    at::Tensor matrix = rows_of(part);
    multiply(rows, rows_of(filter), {}, matrix);
    if (skips()) seen(result.zero_()).copy_(part);
    return result;
  }

  std::vector<bool> wanted_;
};

bool is_plain(const graph::Attributes& attributes) {
  const auto is_all = [&](std::string_view name, int64_t wanted) {
    const graph::Shape list = ops::list_attribute(attributes, name);
    return std::ranges::all_of(list,
                               [&](const graph::Dim& dim) { return dim == graph::Dim(wanted); });
  };
  return !ops::flag_attribute(attributes, "transposed") &&
         ops::integer_attribute(attributes, "groups") == 1 && is_all("padding", 0);
}

}  // namespace

std::unique_ptr<execute::Operation> bind_pixel_convolution(const graph::Node& node,
                                                           const execute::SymbolLookup& symbols) {
  const bool forward = node.op == &op::convolution;
  if (!forward && node.op != &op::convolution_backward) return nullptr;
  const graph::Type& filter = node.inputs[forward ? 1 : 2]->type;
  const bool is_pixel =
      filter.rank() == 4 && filter.shape[2] == graph::Dim(1) && filter.shape[3] == graph::Dim(1);
  if (!is_pixel || !is_plain(node.attributes)) return nullptr;
  if (forward) return std::make_unique<Forward>(node, symbols);
  return std::make_unique<Backward>(node, symbols);
}

}  // namespace janus::torch
