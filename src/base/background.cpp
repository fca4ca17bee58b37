#include "base/background.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <deque>

#include "base/fault.h"
#include "base/fork_safe_mutex.h"
#include "base/policy.h"
#include "base/quiet_thread.h"
#include "base/thread_time.h"
#include "base/timeline.h"

namespace janus {

namespace {

struct Queue {
  std::deque<std::shared_ptr<BackgroundWork>> work;
  pid_t process = 0;  ///< in which a thread runs; the child of a fork has none
  bool is_held = false;
};

/// The process ends. Read under the step's lock.
std::atomic<bool> is_stopped = false;

/// Guards the queue; held for a moment only.
std::mutex& queue_mutex() { return fork_safe_mutex<Queue>(); }
/// Held while a step runs.
std::mutex& step_mutex() { return fork_safe_mutex<BackgroundWork, ForkOrder::first>(); }

Queue& queue() {
  static auto* const instance = new Queue;
  return *instance;
}

}  // namespace

class BackgroundThread {
 public:
  /// Starts the thread of this process unless it runs.
  static void ensure() {
    {
      const std::lock_guard lock(queue_mutex());
      Queue& all = queue();
      if (all.is_held || all.work.empty() || all.process == getpid()) return;
      all.process = getpid();
    }
    if (!start_quiet_thread(&run, policy::kBytesOfCompilingThread)) work_off();
  }

 private:
  static void run() {
    setpriority(PRIO_PROCESS, 0, policy::kNiceness);  // of this thread alone
    work_off();
  }

  static void work_off() {
    while (const std::shared_ptr<BackgroundWork> work = next()) {
      const std::lock_guard lock(step_mutex());
      if (is_stopped) return;
      work->do_next();
    }
  }

  /// Whether it has ended, or nobody waits for it any more.
  static bool is_over(const std::shared_ptr<BackgroundWork>& work) {
    return work->has_ended() || work.use_count() == 1;
  }

  /// The next work to do; null: the thread must end.
  static std::shared_ptr<BackgroundWork> next() {
    std::deque<std::shared_ptr<BackgroundWork>> ended;  // destroyed when the lock is free
    const std::lock_guard lock(queue_mutex());
    Queue& all = queue();
    while (!all.work.empty() && is_over(all.work.front())) {
      ended.push_back(std::move(all.work.front()));
      all.work.pop_front();
    }
    if (!all.work.empty() && !all.is_held) return all.work.front();
    all.process = 0;
    return nullptr;
  }
};

std::shared_ptr<BackgroundWork> BackgroundWork::start(Steps steps) {
  const std::shared_ptr<BackgroundWork> work(new BackgroundWork(std::move(steps)));
  {
    const std::lock_guard lock(queue_mutex());
    queue().work.push_back(work);
  }
  BackgroundThread::ensure();
  return work;
}

bool BackgroundWork::is_done() {
  if (!has_ended()) {
    BackgroundThread::ensure();
    return false;
  }
  if (error_ != nullptr) std::rethrow_exception(error_);
  return true;
}

void BackgroundWork::do_next() {
  const TimelineSpan span("background", "compile a kernel");
  size_t done = done_.load();
  const double start = thread_seconds();
  try {
    fault_point(Fault::memory);
    steps_[done++]();
  } catch (...) {
    error_ = std::current_exception();
    done = steps_.size();
  }
  seconds_ = seconds_ + (thread_seconds() - start);
  done_.store(done, std::memory_order_release);
}

std::unique_lock<std::mutex> BackgroundWork::between_steps() {
  return std::unique_lock(step_mutex());
}

void BackgroundWork::stop() {
  is_stopped = true;
  between_steps();
}

void BackgroundWork::hold(bool is_held) {
  {
    const std::lock_guard lock(queue_mutex());
    queue().is_held = is_held;
  }
  BackgroundThread::ensure();
}

}  // namespace janus
