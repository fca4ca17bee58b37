// Background work: one thread of the process does it step by step, and ends when nothing is left.
//
// A fork waits for the end of a step, so that the child finds the locks free that steps take. A
// thread of the child's own does what is left there. Steps must not ask for Python's lock, which
// the forking thread holds. Where no thread can be started, the work is done at once.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/options.h"

namespace janus {

/// Not among kSwitches: it changes no graph.
inline constexpr Switch kBackgroundSwitch{
    "background", "kernels are compiled while calls run in Python; off: the first graph waits"};

class BackgroundWork {
 public:
  using Steps = std::vector<std::function<void()>>;

  /// Queues the steps; the work has begun when this returns. If the result is destroyed before, the
  /// steps that have not begun are left out.
  static std::shared_ptr<BackgroundWork> start(Steps steps);

  /// Whether all steps are done. An exception of a step ends the work and is thrown here.
  bool is_done();
  /// Seconds of processor time so far.
  double seconds() const { return seconds_.load(); }

  /// No step runs while the lock is held. For whoever changes what steps read.
  static std::unique_lock<std::mutex> between_steps();
  /// Ends the thread after its step, for good: the process ends.
  static void stop();
  /// For tests: holds the queue, or lets it go on.
  static void hold(bool is_held);

 private:
  friend class BackgroundThread;
  explicit BackgroundWork(Steps steps) : steps_(std::move(steps)) {}
  bool has_ended() const { return done_.load(std::memory_order_acquire) == steps_.size(); }
  void do_next();

  Steps steps_;
  std::atomic<size_t> done_ = 0;  ///< steps; all of them after an error
  std::atomic<double> seconds_ = 0;
  std::exception_ptr error_;  ///< written before the last change of done_
};

}  // namespace janus
