// A lock of the whole process that a fork waits for, so that its child finds it free.
#pragma once

#include <pthread.h>

#include <mutex>

namespace janus {

/// One for each `Subject`; it is never destroyed, as threads may outlive everything else.
template <class Subject>
std::mutex& fork_safe_mutex() {
  static std::mutex* const mutex = [] {
    const auto lock = [] { fork_safe_mutex<Subject>().lock(); };
    const auto unlock = [] { fork_safe_mutex<Subject>().unlock(); };
    pthread_atfork(lock, unlock, unlock);
    return new std::mutex();
  }();
  return *mutex;
}

}  // namespace janus
