// Locks of the whole process. A fork waits for them, so that the child finds them free.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace janus {

enum class ForkOrder : uint8_t {
  first,  ///< a fork takes it first: other locks are taken while it is held
  later,
};

/// The lock of a place that is null at first, and gets a new one then. It is never destroyed, since
/// threads may outlive everything else. Among those of an order, a fork takes them in the order in
/// which they were made: so that one which is taken within another comes behind it.
std::mutex& fork_safe_mutex_at(std::atomic<std::mutex*>& place, ForkOrder order);

/// The lock of `Subject`, made at its first use. The place needs no guard of the compiler's: a fork
/// while another thread held that would leave it held in the child for ever.
template <class Subject, ForkOrder order = ForkOrder::later>
std::mutex& fork_safe_mutex() {
  static constinit std::atomic<std::mutex*> place = nullptr;
  std::mutex* const made = place.load(std::memory_order_acquire);
  return made != nullptr ? *made : fork_safe_mutex_at(place, order);
}

}  // namespace janus
