// Runs a kernel on tensors laid out in every way, beside the reference.
#pragma once

#include <numeric>
#include <random>
#include <vector>

#include "guarded_bytes.h"
#include "kernels/compilation.h"
#include "operators.h"
#include "reference.h"

namespace janus::kernels {

using graph::DType;
using reference::Element;

/// A tensor in a buffer of its own, which ends behind its last element; strides in elements over
/// its own dimensions.
struct Tensor {
  DType dtype = DType::f32;
  std::vector<int64_t> sizes, strides;
  GuardedBytes buffer;

  int64_t count() const {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  }
  void* place(int64_t offset) { return buffer.data() + offset * graph::byte_size(dtype); }
  /// Strides in a space of more dimensions, to which it is broadcast.
  std::vector<int64_t> strides_in(size_t rank) const {
    std::vector<int64_t> result(rank, 0);
    for (size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] != 1) result[rank - sizes.size() + i] = strides[i];
    return result;
  }
};

enum class Layout { contiguous, permuted, sliced };

inline Tensor make_tensor(DType dtype, std::vector<int64_t> sizes, Layout layout,
                          std::mt19937& random) {
  Tensor tensor{.dtype = dtype, .sizes = sizes, .strides = std::vector<int64_t>(sizes.size(), 0)};
  std::vector<size_t> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});  // innermost first
  if (layout == Layout::permuted) std::shuffle(order.begin(), order.end(), random);
  int64_t stride = layout == Layout::sliced ? 1 + static_cast<int64_t>(random() % 3) : 1;
  for (size_t dim : order) {
    tensor.strides[dim] = stride;
    stride *= std::max<int64_t>(sizes[dim], 1);
    if (layout == Layout::sliced) stride += static_cast<int64_t>(random() % 3);
  }
  int64_t elements = tensor.count() == 0 ? 0 : 1;
  for (size_t dim = 0; dim < sizes.size() && elements > 0; ++dim)
    elements += (sizes[dim] - 1) * tensor.strides[dim];
  tensor.buffer = GuardedBytes(static_cast<size_t>(elements * graph::byte_size(dtype)));
  return tensor;
}

/// Calls `visit` with every index of a space, as one offset for each list of strides.
template <class Visit>
void for_each_point(const std::vector<int64_t>& sizes,
                    const std::vector<std::vector<int64_t>>& strides, Visit&& visit) {
  for (int64_t size : sizes)
    if (size == 0) return;
  std::vector<int64_t> index(sizes.size(), 0), offsets(strides.size(), 0);
  for (;;) {
    for (size_t t = 0; t < strides.size(); ++t)
      offsets[t] = std::inner_product(index.begin(), index.end(), strides[t].begin(), int64_t{0});
    visit(offsets);
    size_t dim = sizes.size();
    while (dim > 0 && ++index[dim - 1] == sizes[dim - 1]) index[--dim] = 0;
    if (dim == 0) return;
  }
}

/// Fills all of the buffer with elements from `next`.
template <class Next>
void fill(Tensor& tensor, Next&& next) {
  const int64_t size = graph::byte_size(tensor.dtype);
  const auto count = static_cast<int64_t>(tensor.buffer.size()) / size;
  for (int64_t i = 0; i < count; ++i) reference::write(next(tensor.dtype), tensor.place(i));
}

/// One run: operands as the block's parameters and results; `output_of[i]` is an input that output
/// i overwrites, or -1.
struct Case {
  std::vector<int64_t> sizes;
  std::vector<Tensor> inputs;    ///< tensors
  std::vector<Element> numbers;  ///< numbers, in order
  std::vector<bool> parameter_is_tensor;
  std::vector<Tensor> outputs;
  std::vector<int> output_of;
};

inline NumberOperand number_operand(const Element& element) {
  NumberOperand operand{.i64 = -1};
  if (element.dtype == DType::f64)
    operand.f64 = element.floating;
  else if (element.dtype == DType::b1)
    operand.boolean = element.integer != 0;
  else
    operand.i64 = element.integer;
  return operand;
}

/// What the outputs must hold afterwards, point by point: expected[output][point].
inline std::vector<std::vector<Element>> expected_results(const graph::Block& block, Case& c) {
  std::vector<std::vector<int64_t>> strides;
  for (const Tensor& input : c.inputs) strides.push_back(input.strides_in(c.sizes.size()));
  std::vector<std::vector<Element>> results(block.results.size());
  for_each_point(c.sizes, strides, [&](const std::vector<int64_t>& offsets) {
    std::vector<Element> parameters;
    size_t tensor = 0, number = 0;
    for (bool is_tensor : c.parameter_is_tensor) {
      if (is_tensor) {
        parameters.push_back(
            reference::read(c.inputs[tensor].dtype, c.inputs[tensor].place(offsets[tensor])));
        ++tensor;
      } else {
        parameters.push_back(c.numbers[number++]);
      }
    }
    const auto point = reference::evaluate(block, parameters);
    for (size_t i = 0; i < point.size(); ++i) results[i].push_back(point[i]);
  });
  return results;
}

inline Tensor& output_tensor(Case& c, size_t i) {
  return c.output_of[i] < 0 ? c.outputs[i] : c.inputs[static_cast<size_t>(c.output_of[i])];
}

inline void run(const Kernel& kernel, Case& c) {
  std::vector<std::vector<int64_t>> strides;
  std::vector<TensorOperand> tensors;
  std::vector<Tensor*> all;
  for (Tensor& input : c.inputs) all.push_back(&input);
  for (size_t i = 0; i < c.outputs.size(); ++i) all.push_back(&output_tensor(c, i));
  for (Tensor* tensor : all) strides.push_back(tensor->strides_in(c.sizes.size()));
  for (size_t i = 0; i < all.size(); ++i)
    tensors.push_back({all[i]->buffer.data(), strides[i].data()});
  std::vector<NumberOperand> numbers;
  for (const Element& number : c.numbers) numbers.push_back(number_operand(number));
  // Every other time as plans do it, as a whole or in pieces.
  static int runs = 0;
  const Arguments arguments{c.sizes, tensors, numbers};
  const auto placed = ++runs % 2 == 0 ? kernel.place(arguments) : nullptr;
  if (placed == nullptr) return kernel.run(arguments);
  if (runs % 4 == 0) return placed->run(arguments);
  const int64_t middle = placed->pieces() / 2;
  placed->run_pieces(arguments, middle, placed->pieces());
  if (middle > 0) placed->run_pieces(arguments, 0, middle);
}

/// What the outputs hold: as expected_results.
inline std::vector<std::vector<Element>> actual_results(Case& c) {
  std::vector<std::vector<Element>> results(c.outputs.size());
  for (size_t i = 0; i < c.outputs.size(); ++i) {
    Tensor& output = output_tensor(c, i);
    for_each_point(c.sizes, {output.strides_in(c.sizes.size())},
                   [&](const std::vector<int64_t>& offsets) {
                     results[i].push_back(reference::read(output.dtype, output.place(offsets[0])));
                   });
  }
  return results;
}

}  // namespace janus::kernels
