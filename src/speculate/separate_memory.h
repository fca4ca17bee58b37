// The alias check: whether a tensor that a graph writes shares memory with another of its tensors.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "speculate/scratch.h"
#include "speculate/tensor_access.h"

namespace janus::speculate {

/// A hash set of memory by its first address: a step of a deep network has a thousand tensors. Only
/// memory that torch has not allocated may lie within other memory: it is compared with all.
class SeparateMemory {
 public:
  /// For at most `count` tensors.
  explicit SeparateMemory(size_t count)
      : mask_(std::bit_ceil(2 * count + 1) - 1), entries_(mask_ + 1) {}

  /// Adds a tensor's storage (null: it has none). Returns an earlier tensor in the same memory if
  /// at least one of the two is written.
  std::optional<size_t> add(size_t tensor, const void* storage, bool is_written) {
    if (storage == nullptr) return std::nullopt;
    const Memory memory = tensor_access().memory_of(storage);
    if (memory.begin == nullptr) return std::nullopt;
    const Entry entry{memory, tensor, is_written};
    if (memory.is_foreign || !foreign_.empty())
      if (const auto other = find_overlap(entry)) return other;
    size_t place = (reinterpret_cast<uintptr_t>(memory.begin) * kMultiplier >> 32) & mask_;
    for (; entries_[place].memory.begin != nullptr; place = (place + 1) & mask_) {
      if (entries_[place].memory.begin != memory.begin) continue;
      if (is_written || entries_[place].is_written) return entries_[place].tensor;
      return std::nullopt;
    }
    entries_[place] = entry;
    if (memory.is_foreign) foreign_.push_back(entry);
    return std::nullopt;
  }

 private:
  struct Entry {
    Memory memory;
    size_t tensor = 0;
    bool is_written = false;
  };

  static bool overlap(const Entry& a, const Entry& b) {
    const std::less<> before;
    return (a.is_written || b.is_written) && before(a.memory.begin, b.memory.end) &&
           before(b.memory.begin, a.memory.end);
  }

  std::optional<size_t> find_overlap(const Entry& entry) {
    for (const Entry& other : foreign_)
      if (overlap(entry, other)) return other.tensor;
    if (!entry.memory.is_foreign) return std::nullopt;
    for (size_t place = 0; place <= mask_; ++place)
      if (entries_[place].memory.begin != nullptr && overlap(entry, entries_[place]))
        return entries_[place].tensor;
    return std::nullopt;
  }

  /// Spreads addresses, whose low bits are alike: 2^64 divided by the golden ratio.
  static constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;

  size_t mask_;
  Scratch<Entry, 128> entries_;
  std::vector<Entry> foreign_;
};

}  // namespace janus::speculate
