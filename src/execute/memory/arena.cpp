// Best-fit placement of buffers, and the arena's memory.
#include "execute/memory/arena.h"

#include <algorithm>
#include <limits>
#include <new>
#include <numeric>

namespace janus::execute {

namespace {

int64_t aligned(int64_t bytes) { return (bytes + arena_alignment - 1) & ~(arena_alignment - 1); }

bool alive_together(const Buffer& a, const Buffer& b) {
  return a.first <= b.last && b.first <= a.last;
}

/// The start of the smallest gap between `taken` (sorted by offset) that holds `bytes`; the end of
/// all if none does.
int64_t best_gap(const std::vector<const Buffer*>& taken, int64_t bytes) {
  int64_t best = -1;
  int64_t best_size = std::numeric_limits<int64_t>::max();
  int64_t end = 0;
  for (const Buffer* buffer : taken) {
    const int64_t gap = buffer->offset - end;
    if (gap >= bytes && gap < best_size) {
      best = end;
      best_size = gap;
    }
    end = std::max(end, buffer->offset + aligned(buffer->bytes));
  }
  return best >= 0 ? best : end;
}

}  // namespace

int64_t place_buffers(std::vector<Buffer>& buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return buffers[a].bytes != buffers[b].bytes ? buffers[a].bytes > buffers[b].bytes : a < b;
  });
  std::vector<const Buffer*> placed;  // sorted by offset
  int64_t total = 0;
  for (size_t index : order) {
    Buffer& buffer = buffers[index];
    std::vector<const Buffer*> taken;
    std::copy_if(placed.begin(), placed.end(), std::back_inserter(taken),
                 [&](const Buffer* other) { return alive_together(buffer, *other); });
    buffer.offset = best_gap(taken, aligned(buffer.bytes));
    total = std::max(total, buffer.offset + aligned(buffer.bytes));
    const auto place =
        std::upper_bound(placed.begin(), placed.end(), &buffer,
                         [](const Buffer* a, const Buffer* b) { return a->offset < b->offset; });
    placed.insert(place, &buffer);
  }
  return total;
}

Memory::Memory(int64_t bytes) {
  if (bytes == 0) return;
  data_.reset(static_cast<char*>(
      ::operator new(static_cast<size_t>(bytes), std::align_val_t(arena_alignment))));
}

void Memory::Free::operator()(char* memory) const {
  ::operator delete(memory, std::align_val_t(arena_alignment));
}

}  // namespace janus::execute
