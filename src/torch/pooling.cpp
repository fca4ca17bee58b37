// Maxima of windows over planes, without branches.
//
// ATen's loop branches at each element of a window, and for data as unpredictable as activations
// that costs more than anything else in it. Values, indices and what becomes of NaN are the same:
// of equal elements the first one is taken, and each NaN replaces what was found before it.
#include "torch/pooling.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/processor.h"
#include "base/thread_pool.h"
#include "graph/op.h"
#include "ops/list.h"
#include "torch/arguments.h"
#include "torch/boxed_operation.h"
#include "torch/grain.h"
#include "torch/overload.h"
#include "torch/tensor.h"
#include "torch/version.h"

namespace janus::torch {

using execute::Operands;

namespace {

/// Windows that are worked on at a time, of as many rows as it takes: loops of whole vectors.
constexpr int64_t block = 32;

struct Windows {
  std::array<int64_t, 2> kernel{}, stride{};
  std::array<int64_t, 2> input{}, output{};  ///< sizes of a plane
  int64_t count = 0;                         ///< windows of a plane
  std::vector<int32_t> corners;  ///< first element of each window, filled up to whole blocks
};

[[gnu::always_inline]] inline void pool_plane(const float* plane, const Windows& windows,
                                              float* values, int64_t* indices) {
  for (int64_t begin = 0; begin < windows.count; begin += block) {
    const int32_t* const corners = windows.corners.data() + begin;
    float best[block];
    int32_t where[block];
    for (int64_t i = 0; i < block; ++i) best[i] = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < block; ++i) where[i] = corners[i];
    for (int64_t y = 0; y < windows.kernel[0]; ++y) {
      for (int64_t x = 0; x < windows.kernel[1]; ++x) {
        const auto offset = static_cast<int32_t>(y * windows.input[1] + x);
        float here[block];
        for (int64_t i = 0; i < block; ++i) here[i] = plane[corners[i] + offset];
        for (int64_t i = 0; i < block; ++i) {
          const float value = here[i];
          const bool taken = (value > best[i]) | (value != value);
          best[i] = taken ? value : best[i];
          where[i] = taken ? corners[i] + offset : where[i];
        }
      }
    }
    const int64_t count = std::min(block, windows.count - begin);
    std::copy_n(best, count, values + begin);
    std::copy_n(where, count, indices + begin);
  }
}

using PoolPlane = void (*)(const float*, const Windows&, float*, int64_t*);

void pool_plane_anywhere(const float* plane, const Windows& windows, float* values,
                         int64_t* indices) {
  pool_plane(plane, windows, values, indices);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void pool_plane_avx2(const float* plane, const Windows& windows,
                                             float* values, int64_t* indices) {
  pool_plane(plane, windows, values, indices);
}
#endif

PoolPlane best_pool_plane() {
#if defined(__x86_64__)
  if (instruction_set() >= InstructionSet::avx2) return pool_plane_avx2;
#endif
  return pool_plane_anywhere;
}

std::array<int64_t, 2> pair_of(const c10::IValue& value) {
  const auto list = value.toIntVector();
  return {list.at(0), list.size() > 1 ? list[1] : list[0]};
}

class MaxPool final : public execute::Operation {
 public:
  MaxPool(const graph::Node& node, const execute::SymbolLookup& symbols)
      : general_(bind_boxed(node, symbols)) {
    const auto sources =
        argument_sources(node, find_overload(overload_name(node)).schema(), symbols);
    const auto constant = [&](size_t index) { return sources.at(index).value; };
    windows_.kernel = pair_of(constant(1));
    windows_.stride = constant(2).toIntVector().empty() ? windows_.kernel : pair_of(constant(2));
    const auto is_all = [&](size_t index, int64_t wanted) {
      return pair_of(constant(index)) == std::array<int64_t, 2>{wanted, wanted};
    };
    simple_ = is_all(3, 0) && is_all(4, 1) && !constant(5).toBool();
  }

  bool can_run_into() const override { return general_->can_run_into(); }

  void run(const Operands& operands) override {
    Borrowed input(operands.in(0));
    if (!can_pool(*input)) return general_->run(operands);
    const Windows windows = windows_of(*input);
    std::vector<int64_t> sizes = input->sizes().vec();
    std::copy(windows.output.begin(), windows.output.end(), sizes.end() - 2);
    at::Tensor values = at::empty(sizes, input->options());
    at::Tensor indices = at::empty(sizes, input->options().dtype(at::kLong));
    pool(*input, windows, values, indices);
    operands.out(0) = slot_of(std::move(values));
    operands.out(1) = slot_of(std::move(indices));
  }

  void run_into(const Operands& operands) override {
    Borrowed input(operands.in(0)), values(operands.out(0)), indices(operands.out(1));
    if (!can_pool(*input) || !values->is_contiguous() || !indices->is_contiguous()) {
      return general_->run_into(operands);
    }
    pool(*input, windows_of(*input), *values, *indices);
  }

 private:
  bool can_pool(const at::Tensor& input) const {
    if (!simple_ || input.scalar_type() != at::kFloat || input.dim() < 3 || input.numel() == 0 ||
        !input.is_contiguous() || input.suggest_memory_format() != at::MemoryFormat::Contiguous) {
      return false;
    }
    const int64_t height = input.size(-2), width = input.size(-1);
    return height >= windows_.kernel[0] && width >= windows_.kernel[1] &&
           height * width <= std::numeric_limits<int32_t>::max();
  }

  Windows windows_of(const at::Tensor& input) const {
    Windows windows = windows_;
    windows.input = {input.size(-2), input.size(-1)};
    for (size_t i = 0; i < 2; ++i) {
      windows.output[i] = (windows.input[i] - windows.kernel[i]) / windows.stride[i] + 1;
    }
    windows.count = windows.output[0] * windows.output[1];
    const int64_t rows = windows.output[0], columns = windows.output[1];
    windows.corners.reserve(windows.count + block);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        const int64_t corner = row * windows.stride[0] * windows.input[1];
        windows.corners.push_back(static_cast<int32_t>(corner + column * windows.stride[1]));
      }
    }
    const int64_t blocks = (windows.count + block - 1) / block;
    windows.corners.resize(blocks * block, windows.corners.back());
    return windows;
  }

  static void pool(const at::Tensor& input, const Windows& windows, at::Tensor& values,
                   at::Tensor& indices) {
    static const PoolPlane pool_plane_here = best_pool_plane();
    const int64_t area = windows.input[0] * windows.input[1];
    const int64_t results = windows.count;
    const float* const from = elements_of<float>(input);
    float* const to = values.mutable_data_ptr<float>();
    int64_t* const at = indices.mutable_data_ptr<int64_t>();
    const int64_t planes = input.numel() / area;
    parallel_for(planes, grain(planes, area), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        pool_plane_here(from + plane * area, windows, to + plane * results, at + plane * results);
      }
    });
  }

  std::unique_ptr<execute::Operation> general_;
  Windows windows_;
  bool simple_ = false;
};

}  // namespace

std::unique_ptr<execute::Operation> bind_pooling(const graph::Node& node,
                                                 const execute::SymbolLookup& symbols) {
  if (node.op != &op::max_pool2d_with_indices) return nullptr;
  return std::make_unique<MaxPool>(node, symbols);
}

}  // namespace janus::torch
