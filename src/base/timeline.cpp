#include "base/timeline.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <utility>

namespace janus {
namespace {

struct Kept {
  std::mutex mutex;
  std::vector<Timeline::Event> events;
  size_t most = 0, left_out = 0;
};

/// Never freed: threads may still run at the end. A forked process begins with another one, as a
/// thread that it doesn't have may have held the lock.
Kept*& kept() {
  static Kept* all = new Kept;
  return all;
}

uint64_t this_thread() {
  thread_local const auto number = static_cast<uint64_t>(syscall(SYS_gettid));
  return number;
}

}  // namespace

std::atomic<bool> Timeline::is_kept_ = false;

void Timeline::begin(size_t most) {
  static const int at_fork = pthread_atfork(nullptr, nullptr, [] {
    is_kept_ = false;
    kept() = new Kept;
  });
  static_cast<void>(at_fork);
  const std::lock_guard lock(kept()->mutex);
  kept()->events.clear();
  kept()->most = most;
  kept()->left_out = 0;
  is_kept_ = true;
}

std::vector<Timeline::Event> Timeline::end() {
  const std::lock_guard lock(kept()->mutex);
  is_kept_ = false;
  return std::exchange(kept()->events, {});
}

size_t Timeline::left_out() {
  const std::lock_guard lock(kept()->mutex);
  return kept()->left_out;
}

void Timeline::add(const char* category, std::string name, double start, double end,
                   std::string details) {
  Event event{category, std::move(name), std::move(details), start, end, this_thread()};
  const std::lock_guard lock(kept()->mutex);
  if (kept()->events.size() < kept()->most)
    kept()->events.push_back(std::move(event));
  else
    ++kept()->left_out;
}

void TimelineSpan::end() const {
  if (Timeline::is_kept())
    Timeline::add(category_, std::string(name_), start_, steady_seconds(), details);
}

}  // namespace janus
