// Work that nobody waits for: one thread for the whole process does it, step by step, and ends when
// there is no more.
//
// A fork waits for the end of a step, so that its child finds the locks free that steps take; what
// is left to do there, a thread of the child's own does. Steps must not ask for Python's lock,
// which whoever forks holds. Where no thread can be had, the work is done at once.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/options.h"

namespace janus {

/// Beside kSwitches, as it says nothing about graphs.
inline constexpr Switch kBackgroundSwitch{
    "background", "kernels are compiled while calls run in Python; off: the first graph waits"};

class BackgroundWork {
 public:
  using Steps = std::vector<std::function<void()>>;

  /// Work that has been begun.
  static std::shared_ptr<BackgroundWork> start(Steps steps);

  /// Whether all of it is done. What a step threw ends it, and is thrown here.
  bool is_done();
  /// The processor's seconds that it took so far.
  double seconds() const { return seconds_.load(); }

  /// Nothing is done while the lock is held: for who changes what steps read.
  static std::unique_lock<std::mutex> between_steps();
  /// Ends the thread after its step and begins no other: the process ends.
  static void stop();
  /// Tests decide when it goes on.
  static void hold(bool is_held);

 private:
  friend class BackgroundThread;
  explicit BackgroundWork(Steps steps) : steps_(std::move(steps)) {}
  bool has_ended() const { return done_.load(std::memory_order_acquire) == steps_.size(); }
  void do_next();

  Steps steps_;
  std::atomic<size_t> done_ = 0;  ///< all of them after an error
  std::atomic<double> seconds_ = 0;
  std::exception_ptr error_;  ///< written before the last change of done_
};

}  // namespace janus
