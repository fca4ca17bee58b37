// The memory in which runs keep what stays inside of their graphs.
//
// All plans have it in common, whichever graph and sizes they are for: as a run leaves nothing in
// it, those that do not go on at the same time use the same pages. Each arena is a stretch of
// addresses far larger than what its first plan needs; what no run touches takes no memory.
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
