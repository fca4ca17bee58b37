// See layout_copy.h. Each image is a matrix, channels by pixels, that is transposed; small squares
// at a time, so that both sides stay in the cache. ATen takes three times as long for a weight.
#include "torch/layout_copy.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "base/thread_pool.h"
#include "graph/op.h"
#include "ops/list.h"
#include "torch/grain.h"
#include "torch/tensor.h"

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

bool transpose_all(size_t element_size, const at::Tensor& from, int64_t count, int64_t rows,
                   int64_t columns, const at::Tensor& to) {
  const void* source = from.const_data_ptr();
  void* target = to.mutable_data_ptr();
  if (element_size == 4) return transpose_all<uint32_t>(source, count, rows, columns, target), true;
  if (element_size == 8) return transpose_all<uint64_t>(source, count, rows, columns, target), true;
  return false;
}

}  // namespace

bool copy_between_layouts(const at::Tensor& to, const at::Tensor& from) {
  if (to.dtype() != from.dtype() || to.sizes() != from.sizes()) return false;
  if (from.is_neg() || from.is_conj() || to.is_neg() || to.is_conj()) return false;
  if (to.dim() == 2 && to.is_contiguous() && from.t().is_contiguous())
    return transpose_all(to.element_size(), from, 1, to.size(1), to.size(0), to);
  if (to.dim() != 4) return false;
  const auto last = at::MemoryFormat::ChannelsLast;
  const bool make_last = from.is_contiguous() && to.is_contiguous(last);
  const bool make_planes = from.is_contiguous(last) && to.is_contiguous();
  if (!make_last && !make_planes) return false;
  const int64_t channels = to.size(1), pixels = to.size(2) * to.size(3);
  return transpose_all(to.element_size(), from, to.size(0), make_last ? channels : pixels,
                       make_last ? pixels : channels, to);
}

namespace {

/// `contiguous` of a matrix.
class MatrixInOrder final : public execute::Operation {
 public:
  bool can_run_into() const override { return true; }
  void run(const execute::Operands& operands) override {
    Borrowed matrix(operands.in(0));
    if (matrix->is_contiguous()) {
      operands.out(0) = operands.in(0);
      return;
    }
    at::Tensor out = at::empty(matrix->sizes(), matrix->options());
    copy(*matrix, out);
    operands.out(0) = slot_of(std::move(out));
  }
  void run_into(const execute::Operands& operands) override {
    Borrowed matrix(operands.in(0)), out(operands.out(0));
    copy(*matrix, *out);
  }

 private:
  static void copy(const at::Tensor& from, at::Tensor& to) {
    if (!copy_between_layouts(to, from)) to.copy_(from);
  }
};

}  // namespace

std::unique_ptr<execute::Operation> bind_layout_copy(const graph::Node& node) {
  const bool fits = node.op == &op::contiguous && node.output()->type.rank() == 2;
  return fits ? std::make_unique<MatrixInOrder>() : nullptr;
}

}  // namespace janus::torch
