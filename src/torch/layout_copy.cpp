// See layout_copy.h. Each image is a matrix, channels by pixels, that is transposed; small squares
// at a time, so that both sides stay in the cache.
#include "torch/layout_copy.h"

#include <algorithm>

#include "base/thread_pool.h"

namespace janus::torch {

namespace {

constexpr int64_t tile = 16;
constexpr int64_t least_work = 1 << 14;

/// to[column, row] = from[row, column] for rows x columns elements.
template <class T>
void transpose(const T* from, int64_t rows, int64_t columns, T* __restrict to) {
  for (int64_t r = 0; r < rows; r += tile) {
    const int64_t last_row = std::min(rows, r + tile);
    for (int64_t c = 0; c < columns; c += tile) {
      const int64_t last_column = std::min(columns, c + tile);
      for (int64_t j = c; j < last_column; ++j) {
        for (int64_t i = r; i < last_row; ++i) to[j * rows + i] = from[i * columns + j];
      }
    }
  }
}

/// `count` matrices.
template <class T>
void transpose_all(const void* from, int64_t count, int64_t rows, int64_t columns, void* to) {
  const int64_t size = rows * columns;
  const int64_t grain = std::max<int64_t>(1, least_work / std::max<int64_t>(1, size));
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      transpose(static_cast<const T*>(from) + n * size, rows, columns,
                static_cast<T*>(to) + n * size);
    }
  });
}

}  // namespace

bool copy_between_layouts(const at::Tensor& to, const at::Tensor& from) {
  if (to.dim() != 4 || from.dim() != 4 || to.dtype() != from.dtype()) return false;
  const auto last = at::MemoryFormat::ChannelsLast;
  const bool make_last = from.is_contiguous() && to.is_contiguous(last);
  const bool make_planes = from.is_contiguous(last) && to.is_contiguous();
  if ((!make_last && !make_planes) || to.sizes() != from.sizes()) return false;
  const int64_t channels = to.size(1), pixels = to.size(2) * to.size(3);
  const int64_t rows = make_last ? channels : pixels, columns = make_last ? pixels : channels;
  const void* source = from.const_data_ptr();
  void* target = to.mutable_data_ptr();
  switch (to.element_size()) {
    case 4:
      transpose_all<uint32_t>(source, to.size(0), rows, columns, target);
      return true;
    case 8:
      transpose_all<uint64_t>(source, to.size(0), rows, columns, target);
      return true;
    default:
      return false;
  }
}

}  // namespace janus::torch
