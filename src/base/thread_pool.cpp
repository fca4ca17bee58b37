#include "base/thread_pool.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/free_memory.h"
#include "base/options.h"
#include "base/policy.h"

namespace janus {
namespace {

void relax_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// One loop: its range, cut into `pieces`.
struct Job {
  detail::RangeFunction function;
  const void* context;
  int64_t count;
  int64_t pieces;
  std::atomic<bool> failed = false;
  std::exception_ptr error;  // written by the piece that sets `failed`

  void run_piece(int64_t piece) {
    // The first `rest` pieces are one longer; count * piece could overflow.
    const int64_t base = count / pieces, rest = count % pieces;
    const int64_t begin = piece * base + std::min(piece, rest);
    const int64_t end = begin + base + (piece < rest ? 1 : 0);
    try {
      function(context, begin, end);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }
};

thread_local bool inside_loop = false;

/// The threads of a loaded OpenMP runtime with GNU's interface (which LLVM's offers too).
struct OpenMp {
  void (*parallel)(void (*body)(void*), void* data, unsigned threads, unsigned flags) = nullptr;
  int (*thread_number)() = nullptr;
  int (*team_size)() = nullptr;
  int (*in_parallel)() = nullptr;
  int (*most_threads)() = nullptr;
  void (*set_threads)(int) = nullptr;

  bool found() const { return parallel != nullptr; }

  static OpenMp find() {
    for (const char* library : {"libgomp.so.1", "libomp.so", "libiomp5.so"}) {
      void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
      if (handle == nullptr) continue;
      OpenMp result;
      const auto resolve = [&](auto& pointer, const char* name) {
        pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(dlsym(handle, name));
        return pointer != nullptr;
      };
      if (resolve(result.thread_number, "omp_get_thread_num") &&
          resolve(result.team_size, "omp_get_num_threads") &&
          resolve(result.in_parallel, "omp_in_parallel") &&
          resolve(result.most_threads, "omp_get_max_threads") &&
          resolve(result.set_threads, "omp_set_num_threads") &&
          resolve(result.parallel, "GOMP_parallel"))
        return result;
    }
    return {};
  }

  void run(Job& job) const {
    struct Team {
      const OpenMp& runtime;
      Job& job;
    } team{*this, job};
    parallel(
        [](void* data) {
          auto& [runtime, job] = *static_cast<Team*>(data);
          // The runtime may give fewer threads than were asked for.
          const int64_t size = runtime.team_size();
          inside_loop = true;
          for (int64_t piece = runtime.thread_number(); piece < job.pieces; piece += size)
            job.run_piece(piece);
          inside_loop = false;
        },
        &team, static_cast<unsigned>(job.pieces), 0);
  }
};

/// Threads of our own. One job at a time; `busy_` is held by the thread whose job it is.
class Pool {
 public:
  bool try_run(Job& job) {
    const std::unique_lock lock(busy_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    start_workers(job.pieces - 1);
    job_ = &job;
    unfinished_.store(static_cast<int>(workers_));
    generation_.fetch_add(1);  // not only release: see GraphRunner's notification
    generation_.notify_all();
    inside_loop = true;
    job.run_piece(0);
    inside_loop = false;
    await_zero();
    return true;
  }

 private:
  void start_workers(int64_t wanted) {
    for (; workers_ < wanted; ++workers_) {
      std::thread([this, piece = workers_ + 1, seen = generation_.load()]() mutable {
        inside_loop = true;
        for (;;) {
          await_change(seen);
          if (piece < job_->pieces) job_->run_piece(piece);
          if (unfinished_.fetch_sub(1) == 1) unfinished_.notify_one();
        }
      }).detach();
    }
  }

  void await_change(uint32_t& seen) {
    for (int spin = 0; spin < policy::kSpins && generation_.load(std::memory_order_acquire) == seen;
         ++spin)
      relax_processor();
    generation_.wait(seen, std::memory_order_acquire);
    ++seen;  // every worker takes part in every generation, so none can be missed
  }

  void await_zero() {
    for (int spin = 0; spin < policy::kSpins; ++spin) {
      if (unfinished_.load(std::memory_order_acquire) == 0) return;
      relax_processor();
    }
    for (int left = unfinished_.load(std::memory_order_acquire); left != 0;
         left = unfinished_.load(std::memory_order_acquire))
      unfinished_.wait(left, std::memory_order_acquire);
  }

  std::mutex busy_;
  int64_t workers_ = 0;  // guarded by busy_
  Job* job_ = nullptr;
  std::atomic<uint32_t> generation_ = 0;
  std::atomic<int> unfinished_ = 0;
};

/// Everything that a fork must replace. The old objects are leaked in the child: their locks may be
/// held, and their threads are gone.
struct Process {
  std::atomic<Pool*> pool = nullptr;
  std::atomic<const OpenMp*> openmp = nullptr;
  std::atomic<bool> forked = false;
  std::atomic<int> threads = 0;
  std::atomic<int64_t> most_started = 0;  ///< number of threads for which there was memory

  Process() {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    const bool known = sched_getaffinity(0, sizeof allowed, &allowed) == 0;
    threads = known ? std::max(1, CPU_COUNT(&allowed)) : 1;
    pthread_atfork(nullptr, nullptr, [] {
      Process& process = instance();
      process.pool = nullptr;
      process.openmp = nullptr;  // an OpenMP team does not survive a fork
      process.forked = true;
      inside_loop = false;
    });
  }

  static Process& instance() {
    static Process* const process = new Process;
    return *process;
  }

  /// Asked first, because OpenMP ends the process if it gets no threads.
  bool may_start_threads(int64_t count) {
    if (count <= most_started.load(std::memory_order_relaxed)) return true;
    if (!has_free_memory(count * policy::kBytesOfThread)) return false;
    most_started = count;
    return true;
  }

  Pool& own_threads() {
    Pool* current = pool.load();
    if (current == nullptr) {
      auto* made = new Pool;
      if (pool.compare_exchange_strong(current, made))
        current = made;
      else
        delete made;
    }
    return *current;
  }

  /// Searches again until a runtime is found: torch may be loaded after us.
  const OpenMp* shared_threads() {
    const OpenMp* current = openmp.load(std::memory_order_acquire);
    if (current != nullptr || forked) return current;
    const OpenMp found = OpenMp::find();
    if (!found.found()) return nullptr;
    auto* made = new OpenMp(found);
    if (!openmp.compare_exchange_strong(current, made)) delete made;
    return openmp.load();
  }
};

}  // namespace

void set_thread_count(int count) { Process::instance().threads = std::max(1, count); }

void set_thread_count_here(int count) {
  const OpenMp* openmp = Process::instance().shared_threads();
  if (openmp != nullptr && openmp->most_threads() != count) openmp->set_threads(count);
}

int thread_count() {
  if (!is_parallel()) return 1;
  Process& process = Process::instance();
  const OpenMp* openmp = process.shared_threads();
  return openmp != nullptr ? std::max(1, openmp->most_threads())
                           : process.threads.load(std::memory_order_relaxed);
}

bool uses_openmp() { return Process::instance().shared_threads() != nullptr; }

void detail::parallel_for(int64_t count, int64_t grain, RangeFunction function,
                          const void* context) {
  Process& process = Process::instance();
  const int64_t wanted = count / std::max<int64_t>(grain, 1);
  Job job{function, context, count, std::min<int64_t>(wanted, thread_count())};
  if (job.pieces <= 1 || inside_loop) return function(context, 0, count);
  const OpenMp* openmp = process.shared_threads();
  if (openmp != nullptr && openmp->in_parallel() != 0) return function(context, 0, count);
  if (!process.may_start_threads(job.pieces)) return function(context, 0, count);
  if (openmp != nullptr)
    openmp->run(job);
  else if (!process.own_threads().try_run(job))
    return function(context, 0, count);
  if (job.failed) std::rethrow_exception(job.error);
}

}  // namespace janus
