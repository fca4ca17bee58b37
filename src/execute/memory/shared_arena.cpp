// See shared_arena.h.
#include "execute/memory/shared_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include "base/fork_safe_mutex.h"
#include "base/policy.h"

namespace janus::execute {

namespace {

std::vector<std::weak_ptr<SharedArena>>& all() {
  static auto* const arenas = new std::vector<std::weak_ptr<SharedArena>>();
  return *arenas;
}

std::mutex& arenas_mutex() { return fork_safe_mutex<SharedArena>(); }

/// Null where there are not so many.
char* reserve(int64_t bytes) {
  void* memory = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

}  // namespace

std::shared_ptr<SharedArena> SharedArena::hold_one(int64_t bytes) {
  const std::lock_guard lock(arenas_mutex());
  std::erase_if(all(), [](const auto& arena) { return arena.expired(); });
  for (const auto& each : all()) {
    const std::shared_ptr<SharedArena> arena = each.lock();
    if (arena && arena->bytes_ >= bytes && arena->try_hold()) return arena;
  }
  std::shared_ptr<SharedArena> made(new SharedArena(bytes));
  all().push_back(made);
  return made;
}

void SharedArena::give_back_unused_pages() {
  const std::lock_guard lock(arenas_mutex());
  for (const auto& each : all()) {
    const std::shared_ptr<SharedArena> arena = each.lock();
    if (!arena || !arena->try_hold()) continue;
    madvise(arena->data_, static_cast<size_t>(arena->bytes_), MADV_DONTNEED);
    arena->let_go();
  }
}

SharedArena::SharedArena(int64_t bytes)
    : bytes_(std::max(policy::kLeastReserved, policy::kReservedShare * bytes)) {
  data_ = reserve(bytes_);
  if (data_ != nullptr) return;
  bytes_ = std::max<int64_t>(1, bytes);  // addresses are limited here
  data_ = reserve(bytes_);
  if (data_ == nullptr) throw std::bad_alloc();
}

SharedArena::~SharedArena() { munmap(data_, static_cast<size_t>(bytes_)); }

}  // namespace janus::execute
