#include "base/fork_safe_mutex.h"

#include <pthread.h>

#include <ranges>
#include <vector>

namespace janus {

namespace {

struct Registry {
  std::mutex mutex;  ///< of the lists
  std::vector<std::mutex*> first, later;
};

Registry& registry() {
  static auto* const made = new Registry;
  return *made;
}

/// The lists may grow meanwhile: who holds one of the locks may make others.
void lock_each(const std::vector<std::mutex*>& mutexes, std::unique_lock<std::mutex>& lists) {
  for (size_t i = 0; i < mutexes.size(); ++i) {
    std::mutex* const next = mutexes[i];
    lists.unlock();
    next->lock();
    lists.lock();
  }
}

void lock_all() {
  Registry& all = registry();
  std::unique_lock lists(all.mutex);
  lock_each(all.first, lists);
  lock_each(all.later, lists);
  lists.release();  // until unlock_all()
}

void unlock_all() {
  Registry& all = registry();
  for (std::mutex* each : all.later | std::views::reverse) each->unlock();
  for (std::mutex* each : all.first | std::views::reverse) each->unlock();
  all.mutex.unlock();
}

}  // namespace

std::mutex& fork_safe_mutex_at(std::atomic<std::mutex*>& place, ForkOrder order) {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(lock_all, unlock_all, unlock_all); });
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (std::mutex* const made = place.load(std::memory_order_relaxed)) return *made;
  auto* const made = new std::mutex;
  (order == ForkOrder::first ? all.first : all.later).push_back(made);
  place.store(made, std::memory_order_release);
  return *made;
}

}  // namespace janus
