// The layout of a tensor: element type, sizes and strides, and the rules by which eager chooses the
// strides of results.
#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <vector>

#include "graph/type.h"

namespace janus::execute {

struct Layout {
  graph::DType dtype = graph::DType::f32;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  ///< in elements

  int64_t element_count() const;
  /// Bytes from the first element to the end of the last.
  int64_t span_bytes() const;
  /// Whether strides are those of a freshly made tensor (dimensions of size 1 do not matter).
  bool is_contiguous() const;
  /// Whether these are the tensor's strides, but for those of dimensions of size 1.
  bool has_strides(std::span<const int64_t> wanted) const;
  /// Whether surely no two elements lie in one place.
  bool is_separate() const;
  /// Whether the elements fill a stretch of memory without gaps or overlap, in some order.
  bool is_dense() const;

  friend bool operator==(const Layout&, const Layout&) = default;
};

std::ostream& operator<<(std::ostream& out, const Layout& layout);

std::vector<int64_t> contiguous_strides(std::span<const int64_t> sizes);
Layout contiguous_layout(graph::DType dtype, std::vector<int64_t> sizes);

/// Strides of [batch, channels, height, width], or of more dimensions, with the channels innermost.
std::vector<int64_t> channels_last_strides(std::span<const int64_t> sizes);
/// Whether torch takes a tensor's layout for that (`suggest_memory_format`).
bool suggests_channels_last(const Layout& layout);

/// The strides that eager gives the result of an element-wise operation on operands of these
/// layouts: contiguous as a rule, but the operands' common order of dimensions is kept.
std::vector<int64_t> elementwise_strides(std::span<const int64_t> sizes,
                                         std::span<const Layout* const> operands);

/// The sizes to which operands are broadcast together (null: no tensor); an error if they don't
/// fit.
std::vector<int64_t> broadcast_sizes(std::span<const Layout* const> operands);
/// Strides of an operand within an iteration space of the given sizes: 0 where it is broadcast.
std::vector<int64_t> broadcast_strides(const Layout& operand, std::span<const int64_t> sizes);

}  // namespace janus::execute
