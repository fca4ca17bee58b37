// See layout_copy.h. Matrices are transposed in small squares, so that both sides stay in the
// cache. ATen takes two to three times as long for weights, and for the heads of an attention.
#include "torch/layout_copy.h"

#include <algorithm>
#include <cstring>

#include "base/policy.h"
#include "base/thread_pool.h"
#include "graph/op.h"
#include "ops/list.h"
#include "torch/boxed_operation.h"
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

/// A matrix whose rows begin `step` elements after each other.
template <class T>
struct Source {
  const T* data;
  int64_t rows, columns, step;
};

/// The part of transpose() below in these rows and columns.
template <class T>
void transpose_tile(const Source<T>& from, T* to, int64_t first_row, int64_t last_row,
                    int64_t first_column, int64_t last_column) {
  const int64_t square_rows = last_row - (last_row - first_row) % lanes;
  const int64_t square_columns = last_column - (last_column - first_column) % lanes;
  for (int64_t c = first_column; c < square_columns; c += lanes)
    for (int64_t r = first_row; r < square_rows; r += lanes)
      transpose_square(from.data + r * from.step + c, from.step, to + c * from.rows + r, from.rows);
  const auto move = [&](int64_t r, int64_t c) {
    to[c * from.rows + r] = from.data[r * from.step + c];
  };
  for (int64_t c = square_columns; c < last_column; ++c)
    for (int64_t r = first_row; r < square_rows; ++r) move(r, c);
  for (int64_t r = square_rows; r < last_row; ++r)
    for (int64_t c = first_column; c < last_column; ++c) move(r, c);
}

/// to[column, row] = from[row, column].
template <class T>
void transpose(const Source<T>& from, T* to) {
  for (int64_t r = 0; r < from.rows; r += tile)
    for (int64_t c = 0; c < from.columns; c += tile)
      transpose_tile(from, to, r, std::min(from.rows, r + tile), c,
                     std::min(from.columns, c + tile));
}

/// Copies a tensor into contiguous memory, piece by piece: rows as they are, or matrices that are
/// transposed.
class CopyInOrder {
 public:
  explicit CopyInOrder(const at::Tensor& from)
      : data_(static_cast<const char*>(from.const_data_ptr())),
        element_(static_cast<int64_t>(from.element_size())) {
    for (int64_t d = 0; d < from.dim(); ++d) add_dimension(from.size(d), from.stride(d));
    if (sizes_.empty()) add_dimension(1, 1, true);
    turns_ = strides_.back() != 1;
    const size_t inside = turns_ ? 2 : 1;
    if (sizes_.size() < inside) return;
    outer_ = sizes_.size() - inside;
    for (size_t d = outer_; d < sizes_.size(); ++d) piece_ *= sizes_[d];
    for (size_t d = 0; d < outer_; ++d) pieces_ *= sizes_[d];
    suits_ = turns_ ? strides_[outer_] == 1 && (element_ == 4 || element_ == 8)
                    : pieces_ == 1 || piece_ * element_ >= policy::kLeastCopiedRow;
  }

  /// Whether this is faster than ATen's copy, which is for all.
  bool suits() const { return suits_; }

  void run(void* to) const {
    parallel_for(pieces_, grain(pieces_, piece_), [&](int64_t begin, int64_t end) {
      at::DimVector index(outer_);
      int64_t offset = 0;
      for (size_t d = outer_, rest = static_cast<size_t>(begin); d-- > 0;) {
        index[d] = static_cast<int64_t>(rest) % sizes_[d];
        rest /= static_cast<size_t>(sizes_[d]);
        offset += index[d] * strides_[d];
      }
      for (int64_t i = begin; i < end; ++i) {
        copy_piece(data_ + offset * element_, static_cast<char*>(to) + i * piece_ * element_);
        for (size_t d = outer_; d-- > 0;) {
          offset += strides_[d];
          if (++index[d] < sizes_[d]) break;
          offset -= index[d] * strides_[d];
          index[d] = 0;
        }
      }
    });
  }

 private:
  /// Joined to the one before where one stride leads through both.
  void add_dimension(int64_t size, int64_t stride, bool always = false) {
    if (size == 1 && !always) return;
    if (!sizes_.empty() && strides_.back() == size * stride) {
      sizes_.back() *= size;
      strides_.back() = stride;
      return;
    }
    sizes_.push_back(size);
    strides_.push_back(stride);
  }

  void copy_piece(const char* from, char* to) const {
    if (!turns_) {
      std::memcpy(to, from, static_cast<size_t>(piece_ * element_));
    } else if (element_ == 4) {
      turn<uint32_t>(from, to);
    } else {
      turn<uint64_t>(from, to);
    }
  }

  template <class T>
  void turn(const char* from, char* to) const {
    transpose<T>({reinterpret_cast<const T*>(from), sizes_.back(), sizes_[outer_], strides_.back()},
                 reinterpret_cast<T*>(to));
  }

  const char* data_;
  int64_t element_;
  at::DimVector sizes_, strides_;
  size_t outer_ = 0;  ///< dimensions that pieces lie along
  int64_t piece_ = 1, pieces_ = 1;
  bool turns_ = false, suits_ = false;
};

bool has_plain_elements(const at::Tensor& tensor) { return !tensor.is_neg() && !tensor.is_conj(); }

/// Of as many elements, in the same order. `to` is contiguous.
bool copy_in_order(const at::Tensor& to, const at::Tensor& from) {
  if (to.dtype() != from.dtype() || !has_plain_elements(to) || !has_plain_elements(from))
    return false;
  const CopyInOrder copy(from);
  if (!copy.suits()) return false;
  if (from.numel() > 0) copy.run(to.mutable_data_ptr());
  return true;
}

/// `contiguous` and `reshape` where they copy.
class InOrder final : public execute::Operation {
 public:
  InOrder(const graph::Node& node, const execute::SymbolLookup& symbols)
      : general_(bind_boxed(node, symbols)) {}

  bool can_run_into() const override { return true; }
  void run(const execute::Operands& operands) override { general_->run(operands); }
  void run_into(const execute::Operands& operands) override {
    Borrowed from(operands.in(0)), to(operands.out(0));
    if (!to->is_contiguous()) {
      to->copy_(from->reshape(to->sizes()));
    } else if (!copy_in_order(*to, *from)) {
      to->view(from->sizes()).copy_(*from);
    }
  }

 private:
  std::unique_ptr<execute::Operation> general_;
};

}  // namespace

bool copy_between_layouts(const at::Tensor& to, const at::Tensor& from) {
  if (to.sizes() != from.sizes()) return false;
  if (to.is_contiguous()) return copy_in_order(to, from);
  if (to.dim() != 4 || !to.is_contiguous(at::MemoryFormat::ChannelsLast)) return false;
  return copy_in_order(to.permute({0, 2, 3, 1}), from.permute({0, 2, 3, 1}));
}

std::unique_ptr<execute::Operation> bind_layout_copy(const graph::Node& node,
                                                     const execute::SymbolLookup& symbols) {
  if (node.op != &op::contiguous && node.op != &op::reshape) return nullptr;
  return std::make_unique<InOrder>(node, symbols);
}

}  // namespace janus::torch
