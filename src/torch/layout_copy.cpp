// See layout_copy.h. Each image is a matrix, channels by pixels, that is transposed; small squares
// at a time, so that both sides stay in the cache.
#include "torch/layout_copy.h"

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "torch/grain.h"

namespace janus::torch {

namespace {

constexpr int64_t tile = 16;
constexpr int64_t lanes = 4;

/// Four rows of four elements, transposed in registers; the steps lead from row to row.
template <class T>
void transpose_square(const T* from, int64_t from_step, T* to, int64_t to_step) {
  typedef T Row __attribute__((vector_size(lanes * sizeof(T))));
  Row rows[lanes];
  for (int64_t i = 0; i < lanes; ++i) std::memcpy(&rows[i], from + i * from_step, sizeof(Row));
  const Row low01 = __builtin_shufflevector(rows[0], rows[1], 0, 4, 1, 5);
  const Row high01 = __builtin_shufflevector(rows[0], rows[1], 2, 6, 3, 7);
  const Row low23 = __builtin_shufflevector(rows[2], rows[3], 0, 4, 1, 5);
  const Row high23 = __builtin_shufflevector(rows[2], rows[3], 2, 6, 3, 7);
  const Row columns[lanes] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                              __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                              __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                              __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
  for (int64_t i = 0; i < lanes; ++i) std::memcpy(to + i * to_step, &columns[i], sizeof(Row));
}

/// The part of transpose() below in these rows and columns.
template <class T>
void transpose_tile(const T* from, int64_t rows, int64_t columns, T* to, int64_t first_row,
                    int64_t last_row, int64_t first_column, int64_t last_column) {
  const int64_t square_rows = last_row - (last_row - first_row) % lanes;
  const int64_t square_columns = last_column - (last_column - first_column) % lanes;
  for (int64_t c = first_column; c < square_columns; c += lanes)
    for (int64_t r = first_row; r < square_rows; r += lanes)
      transpose_square(from + r * columns + c, columns, to + c * rows + r, rows);
  const auto move = [&](int64_t r, int64_t c) { to[c * rows + r] = from[r * columns + c]; };
  for (int64_t c = square_columns; c < last_column; ++c)
    for (int64_t r = first_row; r < square_rows; ++r) move(r, c);
  for (int64_t r = square_rows; r < last_row; ++r)
    for (int64_t c = first_column; c < last_column; ++c) move(r, c);
}

/// to[column, row] = from[row, column] for rows x columns elements.
template <class T>
void transpose(const T* from, int64_t rows, int64_t columns, T* to) {
  for (int64_t r = 0; r < rows; r += tile)
    for (int64_t c = 0; c < columns; c += tile)
      transpose_tile(from, rows, columns, to, r, std::min(rows, r + tile), c,
                     std::min(columns, c + tile));
}

/// `count` matrices.
template <class T>
void transpose_all(const void* from, int64_t count, int64_t rows, int64_t columns, void* to) {
  const int64_t size = rows * columns;
  parallel_for(count, grain(size), [&](int64_t begin, int64_t end) {
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
