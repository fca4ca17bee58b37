// The arenas in which runs keep their intermediate tensors, shared by all plans.
//
// A run leaves nothing in its arena, so plans of other graphs and sizes reuse the same pages as
// long as they do not run at the same time. Each arena reserves far more addresses than its first
// plan needs; what no run touches takes no memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace janus::execute {

class SharedArena {
 public:
  /// One with room for so many bytes that nobody else has: held from here on.
  static std::shared_ptr<SharedArena> hold_one(int64_t bytes);
  /// Hands the pages of all that nobody holds back to the system.
  static void give_back_unused_pages();

  ~SharedArena();
  SharedArena(const SharedArena&) = delete;
  SharedArena& operator=(const SharedArena&) = delete;

  char* data() const { return data_; }
  /// False: somebody else holds it.
  bool try_hold() { return !is_held_.exchange(true, std::memory_order_acquire); }
  void let_go() { is_held_.store(false, std::memory_order_release); }

 private:
  explicit SharedArena(int64_t bytes);

  char* data_ = nullptr;
  int64_t bytes_ = 0;
  std::atomic<bool> is_held_ = true;
};

}  // namespace janus::execute
