// Strides: contiguous, dense, broadcast, and those of element-wise results.
#include "execute/values/layout.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "base/check.h"

namespace janus::execute {

int64_t Layout::element_count() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

int64_t Layout::span_bytes() const {
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return 0;
    last += (sizes[d] - 1) * strides[d];
  }
  return (last + 1) * graph::byte_size(dtype);
}

bool Layout::is_contiguous() const {
  int64_t expected = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 0) return true;
    if (sizes[d] != 1 && strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

bool Layout::has_strides(std::span<const int64_t> wanted) const {
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1 && strides[d] != wanted[d]) return false;
  return true;
}

namespace {

/// The dimensions of more than one element, or none, from the innermost to the outermost in memory.
std::vector<size_t> inner_to_outer(const Layout& layout) {
  std::vector<size_t> order(layout.sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t d) { return layout.sizes[d] == 1; });
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return layout.strides[a] < layout.strides[b]; });
  return order;
}

}  // namespace

bool Layout::is_separate() const {
  int64_t span = 1;
  for (size_t d : inner_to_outer(*this)) {
    if (strides[d] < span) return false;
    span += (sizes[d] - 1) * strides[d];
  }
  return true;
}

bool Layout::is_dense() const {
  int64_t expected = 1;
  for (size_t d : inner_to_outer(*this)) {
    if (sizes[d] == 0) return true;
    if (strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

std::ostream& operator<<(std::ostream& out, const Layout& layout) {
  out << graph::name(layout.dtype) << '[';
  for (size_t d = 0; d < layout.sizes.size(); ++d) out << (d == 0 ? "" : ",") << layout.sizes[d];
  out << ']';
  if (layout.is_contiguous()) return out;
  out << " strides (";
  for (size_t d = 0; d < layout.strides.size(); ++d) {
    out << (d == 0 ? "" : ",") << layout.strides[d];
  }
  return out << ')';
}

std::vector<int64_t> contiguous_strides(std::span<const int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t next = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = next;
    next *= std::max<int64_t>(sizes[d], 1);
  }
  return strides;
}

Layout contiguous_layout(graph::DType dtype, std::vector<int64_t> sizes) {
  Layout layout{dtype, std::move(sizes), {}};
  layout.strides = contiguous_strides(layout.sizes);
  return layout;
}

std::vector<int64_t> broadcast_strides(const Layout& operand, std::span<const int64_t> sizes) {
  TORCHJANUS_CHECK(operand.sizes.size() <= sizes.size(), "broadcast_strides: operand ", operand,
                   " has a higher rank than the iteration space");
  std::vector<int64_t> strides(sizes.size(), 0);
  const size_t missing = sizes.size() - operand.sizes.size();
  for (size_t d = 0; d < operand.sizes.size(); ++d) {
    if (operand.sizes[d] == 1 && sizes[missing + d] != 1) continue;
    TORCHJANUS_CHECK(operand.sizes[d] == sizes[missing + d], "broadcast_strides: operand ", operand,
                     " does not fit the iteration space at dimension ", missing + d);
    strides[missing + d] = operand.strides[d];
  }
  return strides;
}

namespace {

/// -1: a is the inner of the two dimensions, 1: b is, 0: the operands do not say.
int compare_dimensions(size_t a, size_t b, std::span<const int64_t> sizes,
                       std::span<const std::vector<int64_t>> strides) {
  for (const std::vector<int64_t>& operand : strides) {
    const int64_t stride_a = operand[a];
    const int64_t stride_b = operand[b];
    if (stride_a == 0 || stride_b == 0) continue;
    if (stride_a < stride_b) return -1;
    if (stride_a > stride_b) return 1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

/// Dimensions from the innermost to the outermost, ordered by the operands' strides where those
/// say something, else as in a contiguous tensor.
std::vector<size_t> iteration_order(std::span<const int64_t> sizes,
                                    std::span<const std::vector<int64_t>> strides) {
  const size_t rank = sizes.size();
  std::vector<size_t> order(rank);
  for (size_t d = 0; d < rank; ++d) order[d] = rank - 1 - d;
  for (size_t i = 1; i < rank; ++i) {
    size_t moving = i;
    for (size_t other = i; other-- > 0;) {
      const int comparison = compare_dimensions(order[other], order[moving], sizes, strides);
      if (comparison > 0) {
        std::swap(order[other], order[moving]);
        moving = other;
      } else if (comparison < 0) {
        break;
      }
    }
  }
  return order;
}

}  // namespace

std::vector<int64_t> channels_last_strides(std::span<const int64_t> sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t next = 1;
  const auto place = [&](size_t d) {
    strides[d] = next;
    next *= std::max<int64_t>(sizes[d], 1);
  };
  place(1);
  for (size_t d = sizes.size() - 1; d > 1; --d) place(d);
  place(0);
  return strides;
}

bool suggests_channels_last(const Layout& layout) {
  const size_t rank = layout.sizes.size();
  if (rank != 4 && rank != 5) return false;
  if (layout.element_count() == 0 || layout.strides[1] == 0) return false;
  int64_t least = 0;
  const auto follows = [&](size_t d) {
    if (layout.strides[d] < least) return false;
    // Where only the batch has more than one element, planes are what is meant.
    if (d == 0 && least == layout.strides[1]) return false;
    least = layout.strides[d] * layout.sizes[d];
    return true;
  };
  if (!follows(1)) return false;
  for (size_t d = rank - 1; d > 1; --d)
    if (!follows(d)) return false;
  return follows(0);
}

std::vector<int64_t> elementwise_strides(std::span<const int64_t> sizes,
                                         std::span<const Layout* const> operands) {
  const bool full_size = std::all_of(operands.begin(), operands.end(), [&](const Layout* operand) {
    return std::equal(sizes.begin(), sizes.end(), operand->sizes.begin(), operand->sizes.end());
  });
  if (full_size && !operands.empty()) {
    const auto contiguous = [](const Layout* operand) { return operand->is_contiguous(); };
    if (std::all_of(operands.begin(), operands.end(), contiguous)) return contiguous_strides(sizes);
    const auto same = [&](const Layout* operand) {
      return operand->strides == operands[0]->strides;
    };
    if (std::all_of(operands.begin(), operands.end(), same) && operands[0]->is_dense()) {
      return operands[0]->strides;
    }
  }
  std::vector<std::vector<int64_t>> strides;
  for (const Layout* operand : operands) strides.push_back(broadcast_strides(*operand, sizes));
  const std::vector<size_t> order = iteration_order(sizes, strides);
  if (std::is_sorted(order.rbegin(), order.rend())) return contiguous_strides(sizes);
  std::vector<int64_t> result(sizes.size());
  int64_t next = 1;
  for (size_t d : order) {
    result[d] = next;
    next *= sizes[d];
  }
  return result;
}

namespace {

/// Broadcasts `sizes` to hold `other` too.
void broadcast(std::vector<int64_t>& sizes, std::span<const int64_t> other) {
  if (other.size() > sizes.size()) sizes.insert(sizes.begin(), other.size() - sizes.size(), 1);
  const size_t missing = sizes.size() - other.size();
  for (size_t d = 0; d < other.size(); ++d) {
    int64_t& size = sizes[missing + d];
    TORCHJANUS_CHECK(size == other[d] || size == 1 || other[d] == 1, "fused: sizes ", size, " and ",
                     other[d], " do not broadcast");
    if (size == 1) size = other[d];
  }
}

}  // namespace

std::vector<int64_t> broadcast_sizes(std::span<const Layout* const> operands) {
  std::vector<int64_t> sizes;
  for (const Layout* operand : operands) {
    if (operand != nullptr) broadcast(sizes, operand->sizes);
  }
  return sizes;
}

}  // namespace janus::execute
