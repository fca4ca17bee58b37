#include "kernels/space.h"

#include <algorithm>

#include "base/check.h"

namespace janus::kernels {

bool Space::read(const Arguments& arguments, const LoopNest& nest) {
  TORCHJANUS_CHECK(arguments.sizes.size() <= kMaxRank, "kernel: rank ", arguments.sizes.size());
  TORCHJANUS_CHECK(arguments.tensors.size() + nest.positions.size() <= kMaxTensors,
                   "kernel: ", arguments.tensors.size(), " tensors");
  const int held = static_cast<int>(arguments.tensors.size());
  tensors = held + static_cast<int>(nest.positions.size());
  has_other_sizes = arguments.has_other_sizes;
  rank = 0;
  for (size_t dim = arguments.sizes.size(); dim-- > 0;) {
    const int64_t size = arguments.sizes[dim];
    const bool is_reduced = (nest.reduced >> dim & 1) != 0;
    if (size == 0 && !is_reduced) return false;
    if (size == 1) continue;
    sizes[rank] = size;
    reduced[rank] = is_reduced;
    for (int t = 0; t < held; ++t)
      strides[rank][t] = arguments.tensors[static_cast<size_t>(t)].strides[dim];
    for (int t = held; t < tensors; ++t) {
      const uint32_t along = nest.positions[static_cast<size_t>(t - held)];
      strides[rank][t] = dim + along == arguments.sizes.size() ? 1 : 0;
    }
    ++rank;
  }
  return true;
}

void Space::simplify(int inputs) {
  join();
  if (rank > 1) {
    sort(inputs);
    join();
  }
  arrange();
}

/// The dimension of the lanes stays in front; then come one of the rows and the reduced ones.
void Space::arrange() {
  if (rank == 0) insert_one(0, false);
  int row = 1;
  while (row < rank && reduced[row]) ++row;
  if (row == rank)
    insert_one(1, false);
  else
    move(row, 1);
  reduced_loops = 0;
  for (int dim = 2; dim < rank; ++dim)
    if (reduced[dim]) move(dim, 2 + reduced_loops++);
}

/// Puts dimension `from` further to the inside.
void Space::move(int from, int to) {
  for (; from > to; --from) swap(from, from - 1);
}

void Space::insert_one(int place, bool is_reduced) {
  sizes[rank] = 1;
  reduced[rank] = is_reduced;
  std::fill_n(strides[rank], tensors, 0);
  move(rank++, place);
}

/// Joins each dimension to the one inside it where every tensor goes on with the same stride.
void Space::join() {
  if (rank == 0) return;
  int inner = 0;
  for (int outer = 1; outer < rank; ++outer) {
    bool joins = reduced[outer] == reduced[inner];
    for (int t = 0; t < tensors && joins; ++t)
      joins = strides[outer][t] == strides[inner][t] * sizes[inner];
    if (joins) {
      sizes[inner] *= sizes[outer];
    } else if (++inner != outer) {
      sizes[inner] = sizes[outer];
      reduced[inner] = reduced[outer];
      std::copy_n(strides[outer], tensors, strides[inner]);
    }
  }
  rank = inner + 1;
}

/// Insertion sort: ranks are small, and mostly it is in order already.
void Space::sort(int inputs) {
  for (int dim = 1; dim < rank; ++dim)
    for (int place = dim; place > 0 && runs_inside(place, place - 1, inputs); --place)
      swap(place, place - 1);
}

/// Whether dimension `a` should be nearer to the inside than `b`: the first tensor whose strides
/// differ decides, outputs before inputs.
bool Space::runs_inside(int a, int b, int inputs) const {
  for (int i = 0; i < tensors; ++i) {
    const int t = (i + inputs) % tensors;
    const int64_t stride_a = std::abs(strides[a][t]), stride_b = std::abs(strides[b][t]);
    if (stride_a != 0 && stride_b != 0 && stride_a != stride_b) return stride_a < stride_b;
  }
  return false;
}

void Space::swap(int a, int b) {
  std::swap(sizes[a], sizes[b]);
  std::swap(reduced[a], reduced[b]);
  std::swap_ranges(strides[a], strides[a] + tensors, strides[b]);
}

int64_t Space::element_count() const {
  int64_t count = 1;
  for (int dim = 0; dim < rank; ++dim) count *= sizes[dim];
  return count;
}

int64_t Space::count_of(int tensor) const {
  int64_t count = 1;
  for (int dim = 0; dim < rank; ++dim)
    if (strides[dim][tensor] != 0) count *= sizes[dim];
  return count;
}

int64_t Space::row_length() const {
  int64_t length = 1;
  for (int dim = 0; dim < rank; ++dim)
    if (reduced[dim]) length *= sizes[dim];
  return length;
}

Walk Space::walk(int tensor) const {
  if (sizes[0] == 1) return Walk::contiguous;
  const int64_t stride = strides[0][tensor];
  return stride == 0 ? Walk::broadcast : stride == 1 ? Walk::contiguous : Walk::strided;
}

}  // namespace janus::kernels
