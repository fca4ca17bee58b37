// Locks of the whole process. A fork waits for them, so that the child finds them free.
#pragma once

#include <cstdint>
#include <mutex>

namespace janus {

enum class ForkOrder : uint8_t {
  first,  ///< a fork takes it first: other locks are taken while it is held
  later,
};

/// A new lock, which is never destroyed, since threads may outlive everything else. Among those of
/// an order, a fork takes them in the order in which they were made: so that one which is taken
/// within another comes behind it.
std::mutex& make_fork_safe_mutex(ForkOrder order);

/// The lock of `Subject`, made at its first use.
template <class Subject, ForkOrder order = ForkOrder::later>
std::mutex& fork_safe_mutex() {
  static std::mutex& mutex = make_fork_safe_mutex(order);
  return mutex;
}

}  // namespace janus
