// See convolution.h. The library brings filters into an order of its own at each call and their
// gradients back, which costs several times the convolution itself where images are small; it also
// has sizes that it is very slow with. A product takes filters as they lie; what it costs is the
// matrix of what the filter sees (windows.h), up to as many times the image as the filter has taps.
// That is made and multiplied piece by piece, so that a piece stays in the cache.
#include "torch/convolution.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/policy.h"
#include "base/thread_pool.h"
#include "graph/op.h"
#include "ops/attributes.h"
#include "ops/list.h"
#include "torch/boxed_operation.h"
#include "torch/layout_copy.h"
#include "torch/products.h"
#include "torch/tensor.h"
#include "torch/version.h"
#include "torch/ways.h"
#include "torch/windows.h"

namespace janus::torch {

using execute::Operands;
using execute::Slot;

namespace {

constexpr auto channels_last = at::MemoryFormat::ChannelsLast;

// ---- What is convolved ------------------------------------------------------------------------

/// The sizes of one convolution, and how its tensors lie.
struct Case {
  Windows windows;
  int64_t batch = 0, filters = 0;
  bool last = false;         ///< images lie channels last
  bool filter_last = false;  ///< so does the filter, which makes a difference if it has more taps

  int64_t depth() const { return windows.channels * windows.taps(); }  ///< of the product
  int64_t results() const { return batch * windows.count(); }
  int64_t lines() const { return batch * windows.result[0]; }
  /// For products, the filter is a matrix with a row for each filter.
  RowOrder order() const { return filter_last ? RowOrder::taps_channels : RowOrder::channels_taps; }
  /// What the filter is applied to at once, of results instead of images.
  Windows result_pixels() const {
    return {.channels = filters,
            .image = windows.result,
            .filter = {1, 1},
            .result = windows.result,
            .stride = {1, 1},
            .padding = {0, 0},
            .dilation = {1, 1}};
  }
};

bool is_last(const at::Tensor& tensor) {
  return tensor.dim() == 4 && tensor.suggest_memory_format() == channels_last;
}

bool is_dense(const at::Tensor& tensor, bool last) {
  return tensor.scalar_type() == at::kFloat && tensor.numel() > 0 &&
         (last ? tensor.is_contiguous(channels_last) : tensor.is_contiguous());
}

at::Tensor new_matrix(int64_t rows, int64_t columns, const at::Tensor& like) {
  return at::empty({rows, columns}, like.options());
}

at::Tensor new_tensor(at::IntArrayRef sizes, bool last, const at::Tensor& like) {
  return last ? at::empty(sizes, like.options().memory_format(channels_last))
              : at::empty(sizes, like.options());
}

/// A copy; ATen is slow to make it.
at::Tensor laid_out(const at::Tensor& tensor, bool last) {
  at::Tensor copy = new_tensor(tensor.sizes(), last, tensor);
  if (!copy_between_layouts(copy, tensor)) copy.copy_(tensor);
  return copy;
}

/// Memory without gaps as a matrix, whatever the order of its dimensions.
at::Tensor matrix(const at::Tensor& tensor, int64_t rows) {
  const int64_t columns = tensor.numel() / rows;
  return tensor.as_strided({rows, columns}, {columns, 1});
}

float* data(const at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }

void add_channels(const at::Tensor& bias, int64_t count, float* planes) {
  const float* values = elements_of<float>(bias);
  for (int64_t k = 0; k < bias.numel(); ++k, planes += count)
    for (int64_t i = 0; i < count; ++i) planes[i] += values[k];
}

/// Calls `piece(first, count)` for stretches of `total` lines or images, of so many windows each. A
/// piece is not smaller than the filter, which is read for each.
template <class Piece>
void for_each_piece(const Case& which, int64_t total, int64_t windows, const Piece& piece) {
  const int64_t at_once = std::max(which.filters, policy::kIm2colPieceElements / which.depth());
  const int64_t most = std::max<int64_t>(1, at_once / windows);
  const int64_t pieces = (total + most - 1) / most, length = (total + pieces - 1) / pieces;
  for (int64_t first = 0; first < total; first += length)
    piece(first, std::min(length, total - first));
}

/// out = left right for the first piece, out += left right for later ones.
void sum_products(bool first, const at::Tensor& left, const at::Tensor& right, at::Tensor& out) {
  if (first) {
    multiply(left, right, {}, out);
  } else {
    add_product(left, right, out);
  }
}

// ---- Products ---------------------------------------------------------------------------------

/// Images channels last: windows are rows, and so are results.
namespace by_rows {

/// Calls `piece(lines, first, count)` for pieces of the matrix: lines of windows, and which rows.
template <class Piece>
void for_each_piece(const Case& which, const Piece& piece) {
  const int64_t width = which.windows.result[1];
  torch::for_each_piece(which, which.lines(), width, [&](int64_t first, int64_t count) {
    piece(Lines{first, first + count}, first * width, count * width);
  });
}

void forward(const Case& which, const at::Tensor& image, const at::Tensor& filter,
             const at::Tensor& bias, at::Tensor& result) {
  const at::Tensor factor = matrix(filter, which.filters).t();
  at::Tensor out = matrix(result, which.results());
  if (which.windows.are_pixels())
    return multiply(matrix(image, which.results()), factor, bias, out);
  for_each_piece(which, [&](Lines lines, int64_t first, int64_t count) {
    const at::Tensor rows = new_matrix(count, which.depth(), image);
    gather_rows(data(image), which.windows, which.order(), lines, data(rows));
    at::Tensor part = out.narrow(0, first, count);
    multiply(rows, factor, bias, part);
  });
}

void image_gradient(const Case& which, const at::Tensor& gradient, const at::Tensor& filter,
                    at::Tensor& result) {
  const at::Tensor given = matrix(gradient, which.results());
  const at::Tensor factor = matrix(filter, which.filters);
  if (which.windows.are_pixels()) {
    at::Tensor out = matrix(result, which.results());
    return multiply(given, factor, {}, out);
  }
  result.zero_();
  for_each_piece(which, [&](Lines lines, int64_t first, int64_t count) {
    at::Tensor rows = new_matrix(count, which.depth(), gradient);
    multiply(given.narrow(0, first, count), factor, {}, rows);
    scatter_rows(data(rows), which.windows, which.order(), lines, data(result));
  });
}

void filter_gradient(const Case& which, const at::Tensor& gradient, const at::Tensor& image,
                     at::Tensor& result) {
  const at::Tensor given = matrix(gradient, which.results());
  at::Tensor out = matrix(result, which.filters);
  if (which.windows.are_pixels())
    return multiply(given.t(), matrix(image, which.results()), {}, out);
  for_each_piece(which, [&](Lines lines, int64_t first, int64_t count) {
    const at::Tensor rows = new_matrix(count, which.depth(), image);
    gather_rows(data(image), which.windows, which.order(), lines, data(rows));
    sum_products(first == 0, given.narrow(0, first, count).t(), rows, out);
  });
}

}  // namespace by_rows

/// Images in planes: windows are columns, those of some images side by side.
namespace by_columns {

/// Calls `piece(first, part)` for pieces of the batch: which image is the first one, and the case
/// that they are.
template <class Piece>
void for_each_piece(const Case& which, const Piece& piece) {
  const int64_t windows = which.windows.count();
  torch::for_each_piece(which, which.batch, windows, [&](int64_t first, int64_t count) {
    Case part = which;
    part.batch = count;
    piece(first, part);
  });
}

/// [channels of all taps, windows of all images]
at::Tensor columns_of(const Windows& windows, int64_t batch, const at::Tensor& image) {
  if (windows.are_pixels() && batch == 1) return matrix(image, windows.channels);
  at::Tensor columns =
      new_matrix(windows.channels * windows.taps(), batch * windows.count(), image);
  gather_planes(data(image), batch, windows, data(columns));
  return columns;
}

void forward(const Case& which, const at::Tensor& image, const at::Tensor& filter,
             const at::Tensor& bias, at::Tensor& result) {
  const at::Tensor factor = matrix(filter, which.filters);
  for_each_piece(which, [&](int64_t first, const Case& part) {
    const at::Tensor to = result.narrow(0, first, part.batch);
    const bool direct = part.batch == 1;
    at::Tensor out =
        direct ? matrix(to, part.filters) : new_matrix(part.filters, part.results(), image);
    const at::Tensor from = image.narrow(0, first, part.batch);
    multiply(factor, columns_of(part.windows, part.batch, from), {}, out);
    if (bias.defined()) add_channels(bias, part.results(), data(out));
    if (!direct) scatter_planes(data(out), part.batch, part.result_pixels(), data(to));
  });
}

void image_gradient(const Case& which, const at::Tensor& gradient, const at::Tensor& filter,
                    at::Tensor& result) {
  const at::Tensor factor = matrix(filter, which.filters).t();
  for_each_piece(which, [&](int64_t first, const Case& part) {
    const at::Tensor to = result.narrow(0, first, part.batch);
    const bool direct = part.windows.are_pixels() && part.batch == 1;
    at::Tensor columns =
        direct ? matrix(to, part.depth()) : new_matrix(part.depth(), part.results(), gradient);
    const at::Tensor from = gradient.narrow(0, first, part.batch);
    multiply(factor, columns_of(part.result_pixels(), part.batch, from), {}, columns);
    if (!direct) scatter_planes(data(columns), part.batch, part.windows, data(to));
  });
}

void filter_gradient(const Case& which, const at::Tensor& gradient, const at::Tensor& image,
                     at::Tensor& result) {
  at::Tensor out = matrix(result, which.filters);
  for_each_piece(which, [&](int64_t first, const Case& part) {
    const at::Tensor given = gradient.narrow(0, first, part.batch);
    const at::Tensor from = image.narrow(0, first, part.batch);
    sum_products(first == 0, columns_of(part.result_pixels(), part.batch, given),
                 columns_of(part.windows, part.batch, from).t(), out);
  });
}

}  // namespace by_columns

/// Images in planes, one after the other: what one image needs stays in the cache.
namespace by_image {

/// Calls `image(part, number, room)` for all images, those of a part one after the other; `room` is
/// a matrix for what the filter sees.
template <class Image>
void for_each_image(const Case& which, const at::Tensor& like, const Image& image) {
  const int64_t length = (which.batch + policy::kBatchParts - 1) / policy::kBatchParts;
  const int64_t shares = std::min<int64_t>(policy::kBatchParts, thread_count());
  const at::Tensor rooms =
      at::empty({shares, which.depth(), which.windows.count()}, like.options());
  parallel_for(shares, 1, [&](int64_t begin, int64_t end) {
    const at::AutoDispatchBelowADInplaceOrView below;  // a worker has no run's scope around it
    for (int64_t share = begin; share < end; ++share) {
      const at::Tensor room = rooms[share];
      for (int64_t part = share; part < policy::kBatchParts; part += shares)
        for (int64_t i = part * length; i < std::min(which.batch, (part + 1) * length); ++i)
          image(part, i, room);
    }
  });
}

at::Tensor columns_of(const Case& which, const at::Tensor& image, int64_t number,
                      const at::Tensor& room) {
  const at::Tensor one = image[number];
  if (which.windows.are_pixels()) return matrix(one, which.depth());
  gather_planes(data(one), 1, which.windows, data(room));
  return room;
}

void forward(const Case& which, const at::Tensor& image, const at::Tensor& filter,
             const at::Tensor& bias, at::Tensor& result) {
  const at::Tensor factor = matrix(filter, which.filters);
  for_each_image(which, image, [&](int64_t, int64_t i, const at::Tensor& room) {
    at::Tensor out = matrix(result[i], which.filters);
    multiply(factor, columns_of(which, image, i, room), {}, out);
    if (bias.defined()) add_channels(bias, which.windows.count(), data(out));
  });
}

void image_gradient(const Case& which, const at::Tensor& gradient, const at::Tensor& filter,
                    at::Tensor& result) {
  const at::Tensor factor = matrix(filter, which.filters).t();
  const bool direct = which.windows.are_pixels();
  for_each_image(which, gradient, [&](int64_t, int64_t i, const at::Tensor& room) {
    at::Tensor columns = direct ? matrix(result[i], which.depth()) : room;
    multiply(factor, matrix(gradient[i], which.filters), {}, columns);
    if (!direct) scatter_planes(data(columns), 1, which.windows, data(result[i]));
  });
}

void filter_gradient(const Case& which, const at::Tensor& gradient, const at::Tensor& image,
                     at::Tensor& result) {
  at::Tensor sums = at::zeros({policy::kBatchParts, which.filters, which.depth()}, image.options());
  for_each_image(which, image, [&](int64_t part, int64_t i, const at::Tensor& room) {
    at::Tensor sum = sums[part];
    add_product(matrix(gradient[i], which.filters), columns_of(which, image, i, room).t(), sum);
  });
  at::Tensor out = matrix(result, which.filters);
  at::sum_out(out, sums, {0});
}

}  // namespace by_image

// ---- The choice -------------------------------------------------------------------------------

enum class Part : uint8_t { forward, image_gradient, filter_gradient };
enum Way : int { library, as_product };

/// All that the time depends on; sizes that vary only roughly.
using Key = std::array<int64_t, 19>;

Key key(Part part, const Case& which) {
  const Windows& w = which.windows;
  return {static_cast<int64_t>(part),
          rough_size(which.batch),
          rough_size(which.filters),
          rough_size(w.channels),
          rough_size(w.image[0]),
          rough_size(w.image[1]),
          rough_size(w.result[0]),
          rough_size(w.result[1]),
          w.filter[0],
          w.filter[1],
          w.stride[0],
          w.stride[1],
          w.padding[0],
          w.padding[1],
          w.dilation[0],
          w.dilation[1],
          which.last ? 1 : 0,
          which.filter_last ? 1 : 0,
          threads_of_products()};
}

/// oneDNN's gradient of a 1×1 filter with strides writes beyond its workspace where channels come
/// last and do not fill vectors: torch's own eager mode crashes. Multiples of 16 fill all vectors.
bool overruns_workspace(const Case& which) {
  const Windows& windows = which.windows;
  const bool is_point = windows.filter[0] == 1 && windows.filter[1] == 1;
  const bool has_strides = windows.stride[0] > 1 || windows.stride[1] > 1;
  return which.last && is_point && has_strides && windows.channels % 16 != 0;
}

bool is_done_by_image(const Case& which) {
  return !which.last && which.batch > 1 && which.windows.count() >= policy::kManyWindows;
}

std::string text_of(const Key& key) {
  std::string text = "convolution:";
  for (const int64_t each : key) text += cat(each, ',');
  return text;
}

/// Whether a product would take too much memory.
bool is_too_large(const Case& which) {
  if (is_done_by_image(which)) {
    const int64_t largest = std::max(which.windows.count(), which.filters) * which.depth();
    return largest * policy::kBatchParts > policy::kMostIm2colElements;
  }
  const bool direct = which.last && which.windows.are_pixels();
  return !direct && which.depth() * which.results() > policy::kMostIm2colElements;
}

template <class Run>
Way choose(Part part, const Case& which, const Run& run) {
  static Ways<Key> chosen({"library", "product"}, text_of);
  if (is_too_large(which)) return library;
  return static_cast<Way>(
      chosen.choose(key(part, which), 2, [&](int way) { run(static_cast<Way>(way)); }));
}

/// Which of the products it is.
template <class Product>
Product product_of(const Case& which, Product rows, Product image, Product columns) {
  if (which.last) return rows;
  return is_done_by_image(which) ? image : columns;
}

// ---- The operators ----------------------------------------------------------------------------

class Convolution : public execute::Operation {
 public:
  Convolution(const graph::Node& node, const execute::SymbolLookup& symbols)
      : general_(bind_boxed(node, symbols)),
        stride_(numbers(node, symbols, "stride")),
        padding_(numbers(node, symbols, "padding")),
        dilation_(numbers(node, symbols, "dilation")) {}

 protected:
  /// Nullopt if the loops can't.
  std::optional<Case> examine(const at::Tensor& image, const at::Tensor& filter) const {
    const bool last = is_last(image), filter_last = is_last(filter);
    if ((filter_last && !last) || !is_dense(image, last) || !is_dense(filter, filter_last))
      return std::nullopt;
    if (image.dim() != filter.dim() || image.size(1) != filter.size(1)) return std::nullopt;
    Case which{.batch = image.size(0),
               .filters = filter.size(0),
               .last = last,
               .filter_last = filter_last};
    Windows& windows = which.windows;
    windows.channels = image.size(1);
    const size_t rank = stride_.size();
    for (size_t i = 0; i < 2; ++i) {
      const bool given = rank == 2 || i == 1;  // one dimension is that of columns
      const size_t at = rank == 2 ? i : 0;
      const auto size = [&](const at::Tensor& tensor) {
        return given ? tensor.size(static_cast<int64_t>(2 + at)) : 1;
      };
      windows.image[i] = size(image);
      windows.filter[i] = size(filter);
      windows.stride[i] = given ? stride_[at] : 1;
      windows.padding[i] = given ? padding_[at] : 0;
      windows.dilation[i] = given ? dilation_[at] : 1;
      const int64_t reach = (windows.filter[i] - 1) * windows.dilation[i];
      const int64_t room = windows.image[i] + 2 * windows.padding[i] - reach - 1;
      windows.result[i] = room < 0 ? 0 : room / windows.stride[i] + 1;
    }
    if (windows.count() == 0) return std::nullopt;
    return which;
  }

  std::vector<int64_t> result_sizes(const Case& which) const {
    if (stride_.size() == 1) return {which.batch, which.filters, which.windows.result[1]};
    return {which.batch, which.filters, which.windows.result[0], which.windows.result[1]};
  }

  /// The filter as the library wants it beside images that lie so.
  static at::Tensor beside(const Case& which, const at::Tensor& filter) {
    return !which.last || which.filter_last ? filter : laid_out(filter, which.last);
  }

  /// Nothing is timed in the first run: the planner may then choose another layout.
  bool is_first() { return std::exchange(is_first_, false); }

  std::unique_ptr<execute::Operation> general_;
  std::vector<int64_t> stride_, padding_, dilation_;

 private:
  static std::vector<int64_t> numbers(const graph::Node& node, const execute::SymbolLookup& symbols,
                                      std::string_view name) {
    const size_t rank = node.inputs[0]->type.rank() - 2;
    std::vector<int64_t> result;
    for (const graph::Dim& dim : ops::list_attribute(node.attributes, name, rank))
      result.push_back(dim.evaluate(symbols).value());
    return result;
  }

  bool is_first_ = true;
};

/// (image, filter, bias) -> image
class Forward final : public Convolution {
 public:
  using Convolution::Convolution;

  void run(const Operands& operands) override {
    Borrowed image(operands.in(0)), filter(operands.in(1));
    const std::optional<Case> which = examine(*image, *filter);
    if (!which) return general_->run(operands);
    const at::Tensor bias = operands.in(2).is_tensor() ? tensor_of(operands.in(2)) : at::Tensor();
    const auto compute = [&](Way way) { return convolve(way, *which, *image, *filter, bias); };
    const Way way = is_first() ? library : choose(Part::forward, *which, compute);
    operands.out(0) = slot_of(compute(way));
  }

 private:
  at::Tensor convolve(Way way, const Case& which, const at::Tensor& image, const at::Tensor& filter,
                      const at::Tensor& bias) const {
    if (way == library) {
      return at::convolution(image, beside(which, filter), bias, stride_, padding_, dilation_,
                             false, std::vector<int64_t>(stride_.size()), 1);
    }
    at::Tensor result = new_tensor(result_sizes(which), which.last, image);
    const auto multiply_so =
        product_of(which, by_rows::forward, by_image::forward, by_columns::forward);
    multiply_so(which, image, filter, bias, result);
    return result;
  }
};

/// (result's gradient, image, filter, …) -> gradients of (image, filter, bias), if wanted
class Backward final : public Convolution {
 public:
  Backward(const graph::Node& node, const execute::SymbolLookup& symbols)
      : Convolution(node, symbols), wanted_(ops::mask_attribute(node.attributes, "output_mask")) {}

  void run(const Operands& operands) override {
    Borrowed gradient(operands.in(0)), image(operands.in(1)), filter(operands.in(2));
    const std::optional<Case> which = examine(*image, *filter);
    if (!which || !is_dense(*gradient, which->last) ||
        gradient->sizes() != at::IntArrayRef(result_sizes(*which)))
      return general_->run(operands);
    const auto compute_image = [&](Way way) {
      return image_gradient(way, *which, *gradient, *image, *filter);
    };
    const auto compute_filter = [&](Way way) {
      return filter_gradient(way, *which, *gradient, *image, *filter);
    };
    for (size_t i = 0; i < 3; ++i) operands.out(i) = Slot::none();
    const bool first = is_first();
    if (wanted_[0]) {
      const Way way = first ? library : choose(Part::image_gradient, *which, compute_image);
      operands.out(0) = slot_of(compute_image(way));
    }
    if (wanted_[1]) {
      const Way way = first ? library : choose(Part::filter_gradient, *which, compute_filter);
      operands.out(1) = slot_of(compute_filter(way));
    }
    if (wanted_[2]) {
      const at::Tensor sum = gradient->sum(gradient->dim() == 4 ? at::IntArrayRef({0, 2, 3})
                                                                : at::IntArrayRef({0, 2}));
      operands.out(2) = slot_of(sum);
    }
  }

 private:
  at::Tensor image_gradient(Way way, const Case& which, const at::Tensor& gradient,
                            const at::Tensor& image, const at::Tensor& filter) const {
    if (way == library) {
      return std::get<0>(
          differentiate(gradient, image, beside(which, filter), {true, false, false}));
    }
    at::Tensor result = new_tensor(image.sizes(), which.last, image);
    const auto multiply_so = product_of(which, by_rows::image_gradient, by_image::image_gradient,
                                        by_columns::image_gradient);
    multiply_so(which, gradient, filter, result);
    return result;
  }

  /// Lies as the filter does.
  at::Tensor filter_gradient(Way way, const Case& which, const at::Tensor& gradient,
                             const at::Tensor& image, const at::Tensor& filter) const {
    const bool last = which.last && filter.is_contiguous(channels_last);
    if (way == library && overruns_workspace(which)) {
      const at::Tensor result = std::get<1>(differentiate(
          gradient.contiguous(), image.contiguous(), filter.contiguous(), {false, true, false}));
      return laid_out(result, last);
    }
    if (way == library) {
      at::Tensor result = std::get<1>(differentiate(gradient, image, filter, {false, true, false}));
      return last == which.last ? result : laid_out(result, last);
    }
    at::Tensor result = new_tensor(filter.sizes(), last, filter);
    const auto multiply_so = product_of(which, by_rows::filter_gradient, by_image::filter_gradient,
                                        by_columns::filter_gradient);
    multiply_so(which, gradient, image, result);
    return result;
  }

  std::tuple<at::Tensor, at::Tensor, at::Tensor> differentiate(const at::Tensor& gradient,
                                                               const at::Tensor& image,
                                                               const at::Tensor& filter,
                                                               std::array<bool, 3> wanted) const {
    return at::convolution_backward(gradient, image, filter, std::nullopt, stride_, padding_,
                                    dilation_, false, std::vector<int64_t>(stride_.size()), 1,
                                    wanted);
  }

  std::vector<bool> wanted_;
};

bool is_plain(const graph::Node& node) {
  const size_t rank = node.inputs[0]->type.rank();
  return (rank == 3 || rank == 4) && !ops::flag_attribute(node.attributes, "transposed") &&
         ops::integer_attribute(node.attributes, "groups") == 1 &&
         node.inputs[0]->type.dtype == graph::DType::f32;
}

}  // namespace

std::unique_ptr<execute::Operation> bind_convolution(const graph::Node& node,
                                                     const execute::SymbolLookup& symbols) {
  const bool forward = node.op == &op::convolution;
  if ((!forward && node.op != &op::convolution_backward) || !is_plain(node)) return nullptr;
  if (forward) return std::make_unique<Forward>(node, symbols);
  return std::make_unique<Backward>(node, symbols);
}

}  // namespace janus::torch
