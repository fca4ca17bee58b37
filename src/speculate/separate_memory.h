// The alias check: whether a tensor that a graph writes shares memory with another of its tensors.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "speculate/scratch.h"

namespace janus::speculate {

/// A hash set of storages by address: a step of a deep network has a thousand tensors.
class SeparateMemory {
 public:
  /// For at most `count` tensors.
  explicit SeparateMemory(size_t count)
      : mask_(std::bit_ceil(2 * count + 1) - 1), entries_(mask_ + 1) {}

  /// Adds a tensor's storage (null: it has none). Returns an earlier tensor with the same storage
  /// if at least one of the two is written.
  std::optional<size_t> add(size_t tensor, const void* storage, bool is_written) {
    if (storage == nullptr) return std::nullopt;
    size_t place = (reinterpret_cast<uintptr_t>(storage) * kMultiplier >> 32) & mask_;
    for (; entries_[place].storage != nullptr; place = (place + 1) & mask_) {
      if (entries_[place].storage != storage) continue;
      if (is_written || entries_[place].is_written) return entries_[place].tensor;
      return std::nullopt;
    }
    entries_[place] = {storage, tensor, is_written};
    return std::nullopt;
  }

 private:
  struct Entry {
    const void* storage = nullptr;
    size_t tensor = 0;
    bool is_written = false;
  };
  /// Spreads addresses, whose low bits are alike: 2^64 divided by the golden ratio.
  static constexpr uint64_t kMultiplier = 0x9e3779b97f4a7c15;

  size_t mask_;
  Scratch<Entry, 128> entries_;
};

}  // namespace janus::speculate
