// Storages that lazy execution has made, in order. Under a memory limit, the contents of the oldest
// ones are moved to files: those that a backward pass reads last. The idea is Jittor's swapping.
#pragma once

#include <c10/core/Storage.h>
#include <c10/util/intrusive_ptr.h>

#include <cstddef>
#include <cstdint>
#include <deque>

namespace janus::lazy {

/// Bytes that tensors made by lazy execution may take (`options.memory_limit`); 0: no limit.
extern int64_t memory_limit;

class MadeStorages {
 public:
  /// One that has its contents.
  void add(const c10::Storage& storage);
  /// Moves contents to files until the rest takes no more than that. Which can't be moved stays.
  void keep_below(size_t bytes);
  /// Storages whose contents have ever been moved to a file.
  uint64_t moved() const { return moved_; }

 private:
  std::deque<c10::weak_intrusive_ptr<c10::StorageImpl>> all_;
  uint64_t moved_ = 0;
};

}  // namespace janus::lazy
