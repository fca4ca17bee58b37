#include "base/graph_runner.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

#include "base/fork_safe_mutex.h"
#include "base/policy.h"
#include "base/quiet_thread.h"
#include "base/steady_time.h"
#include "base/thread_pool.h"

namespace janus {

namespace {

/// Whether this is the runner's thread, not one that has to do its work.
thread_local bool is_runner = false;

class QueuedRun final : public GraphRunner::Run {
 public:
  explicit QueuedRun(std::function<void()> work) : work_(std::move(work)) {
    std::fegetenv(&floating_);
  }

  bool is_over() const override { return is_over_.load(std::memory_order_acquire) != 0; }
  void wait() override;
  double seconds() const override { return seconds_; }

  void execute() {
    std::fesetenv(&floating_);
    if (is_runner) set_thread_count_here(threads_);
    const double start = steady_seconds();
    try {
      work_();
    } catch (...) {
      error_ = std::current_exception();
    }
    seconds_ = steady_seconds() - start;
    // In the one order of all such operations: libstdc++ asks afterwards whether anybody waits, and
    // a store that only releases may come behind that question.
    is_over_.store(1);
    is_over_.notify_all();
  }

 private:
  std::function<void()> work_;
  std::fenv_t floating_{};
  int threads_ = std::max(1, thread_count() - 1);  ///< Python needs a processor
  double seconds_ = 0;                             ///< written before is_over_, as the error
  std::exception_ptr error_;
  std::atomic<int> is_over_ = 0;
};

struct Queue {
  std::deque<std::shared_ptr<QueuedRun>> runs;  ///< the first one may be running
  pid_t process = 0;                            ///< whose thread it is
};

std::atomic<bool> is_stopped = false;
/// Changes with every run that is added.
std::atomic<int> added = 0;

/// Guards the queue; held for a moment only.
std::mutex& queue_mutex() { return fork_safe_mutex<Queue>(); }
/// Held during a run.
std::mutex& run_mutex() { return fork_safe_mutex<GraphRunner, ForkOrder::first>(); }

Queue& queue() {
  static auto* const instance = new Queue;
  return *instance;
}

std::shared_ptr<QueuedRun> first_run() {
  const std::lock_guard lock(queue_mutex());
  return queue().runs.empty() ? nullptr : queue().runs.front();
}

/// Unless another thread has removed it.
void remove(const std::shared_ptr<QueuedRun>& run) {
  const std::lock_guard lock(queue_mutex());
  auto& runs = queue().runs;
  if (!runs.empty() && runs.front() == run) runs.pop_front();
}

/// Runs what is queued. False: the process ends.
bool work_off() {
  while (const std::shared_ptr<QueuedRun> run = first_run()) {
    {
      const std::lock_guard lock(run_mutex());
      if (is_stopped) return false;
      if (!run->is_over()) run->execute();  // in the parent of a fork, or by another thread
    }
    remove(run);
  }
  return true;
}

void work_for_ever() {
  is_runner = true;
  for (int seen = added.load(); work_off(); seen = added.load()) added.wait(seen);
}

void ensure_thread() {
  {
    const std::lock_guard lock(queue_mutex());
    if (queue().runs.empty() || queue().process == getpid()) return;
    queue().process = getpid();
  }
  if (start_quiet_thread(&work_for_ever, policy::kBytesOfThread)) return;
  {
    const std::lock_guard lock(queue_mutex());
    queue().process = 0;
  }
  work_off();
}

void QueuedRun::wait() {
  ensure_thread();  // in the child of a fork
  is_over_.wait(0);
  if (error_ != nullptr) std::rethrow_exception(error_);
}

}  // namespace

std::shared_ptr<GraphRunner::Run> GraphRunner::start(std::function<void()> work) {
  const auto run = std::make_shared<QueuedRun>(std::move(work));
  {
    const std::lock_guard lock(queue_mutex());
    queue().runs.push_back(run);
  }
  added.fetch_add(1);
  added.notify_one();
  ensure_thread();
  return run;
}

void GraphRunner::stop() {
  is_stopped = true;
  const std::lock_guard lock(run_mutex());
}

}  // namespace janus
