// Matrix products of f32 by code of our own, for sizes at which libraries spend a good part of
// their time on calls and on copies of their operands.
//
// The code goes over panels of the result, a few vectors wide, and within a panel over tiles of a
// few rows whose sums all stay in registers. What a panel needs of the right operand is laid out in
// a row first, so that the cache holds it while all tiles go over it; the left operand is read
// where it lies. Each element is the sum of its products in order, whatever the sizes beside it
// are.
#pragma once

#include <cstdint>

namespace janus::kernels {

/// Element (i, j) is `data[i * down + j * across]`.
struct Factor {
  const float* data = nullptr;
  int64_t down = 0, across = 0;
};

/// out = left right, or start + left right.
struct Product {
  int64_t rows = 0, columns = 0, inner = 0;  ///< each at least 1
  Factor left, right;                        ///< one of the right one's steps is 1
  float* out = nullptr;                      ///< shares no memory with the operands
  int64_t out_down = 0;
  const float* start = nullptr;  ///< may be `out`, or a row for all rows; null: zeros
  int64_t start_down = 0;
};

/// Whether the processor has vectors for which this is worth while.
bool has_products();

void multiply(const Product& product);

/// How much work that is, as sharing.h counts it.
int64_t work_of(const Product& product);

}  // namespace janus::kernels
