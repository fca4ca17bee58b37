// A lock of the whole process. A fork waits for it, so that the child finds it free.
#pragma once

#include <pthread.h>

#include <mutex>

namespace janus {

/// The lock of `Subject`. It is never destroyed, since threads may outlive everything else.
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
