// A child of a fork finds the locks free, those too that another thread was making just then.
#include "base/fork_safe_mutex.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>
#include <utility>

namespace janus {
namespace {

template <size_t number>
struct Subject;

constexpr size_t kSubjects = 256;

template <size_t... numbers>
constexpr auto all_locks(std::index_sequence<numbers...>) {
  return std::array{&fork_safe_mutex<Subject<numbers>>...};
}

constexpr auto kLocks = all_locks(std::make_index_sequence<kSubjects>());

/// Whether a child of a fork can take them all, in two seconds.
bool child_takes_all() {
  const pid_t child = fork();
  if (child == 0) {
    alarm(2);
    for (const auto lock : kLocks) {
      lock().lock();
      lock().unlock();
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ForkSafeMutex, TheChildTakesLocksThatAnotherThreadMakes) {
  std::atomic<bool> has_begun = false;
  std::thread maker([&] {
    has_begun = true;
    for (const auto lock : kLocks) {
      lock();
      std::this_thread::yield();
    }
  });
  while (!has_begun) std::this_thread::yield();
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(child_takes_all());
  maker.join();
}

TEST(ForkSafeMutex, ALockIsTheSameAlways) {
  EXPECT_EQ(&kLocks[0](), &kLocks[0]());
  EXPECT_NE(&kLocks[0](), &kLocks[1]());
}

}  // namespace
}  // namespace janus
