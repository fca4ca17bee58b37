// See sharing.h.
#include "kernels/sharing.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/check.h"
#include "base/parallel_overhead.h"
#include "base/policy.h"
#include "base/thread_pool.h"
#include "jit/jit.h"

namespace janus::kernels {

namespace {

/// What was found out for each number of threads, of OpenMP's team and of our own; 0: nothing yet.
using Figures = std::array<std::atomic<int>, policy::kMostTeam + 1>;
Figures figures_of_own, figures_of_openmp;

/// All that the figure depends on but the processor.
std::string name_of(int threads, bool is_openmp) {
  std::string surroundings = cat(std::thread::hardware_concurrency());
  for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "OMP_PROC_BIND",
                           "GOMP_CPU_AFFINITY", "KMP_AFFINITY"}) {
    const char* value = is_openmp ? std::getenv(name) : nullptr;
    surroundings += cat(' ', value == nullptr ? "" : value);
  }
  return cat("handing_out:", is_openmp ? "openmp," : "own,", threads, ',',
             jit::digest(surroundings));
}

int cycles_for(int threads) {
  const bool is_openmp = uses_openmp();
  auto& figure =
      (is_openmp ? figures_of_openmp
                 : figures_of_own)[static_cast<size_t>(std::min(threads, policy::kMostTeam))];
  if (const int known = figure.load(std::memory_order_relaxed)) return known;
  if (options().is_disabled(kThreadCostSwitch.name)) return policy::kUsualCycles;
  // Other threads go by the usual figure meanwhile.
  if (int none = 0; !figure.compare_exchange_strong(none, policy::kUsualCycles)) return none;
  const int cycles = kept_or_measured(jit::TuningCache::of("threads"), name_of(threads, is_openmp),
                                      parallel_overhead_cycles);
  log("time", cat("work is handed to ", threads, " threads in ", cycles, " cycles"));
  figure = cycles;
  return cycles;
}

}  // namespace

int64_t work_per_thread() {
  static const int64_t lanes = jit::vector_bytes() / static_cast<int64_t>(sizeof(float));
  const int threads = thread_count();
  const int cycles = threads == 1 ? policy::kUsualCycles : cycles_for(threads);
  return std::max(policy::kLeastWorkPerThread,
                  static_cast<int64_t>(policy::kSharingMargin * cycles) * lanes);
}

bool outweighs_handing_out(int64_t work) {
  return thread_count() > 1 && work / 2 >= work_per_thread();
}

int64_t least_pieces(int64_t work, int64_t pieces) {
  if (!is_worth_sharing(work)) return std::max<int64_t>(pieces, 1);
  const int64_t work_of_one = std::max<int64_t>(work / pieces, 1);
  return (work_per_thread() + work_of_one - 1) / work_of_one;
}

int kept_or_measured(jit::TuningCache& kept, const std::string& which,
                     const std::function<std::optional<double>()>& measure) {
  const auto known = kept.find(which);
  if (known && *known >= policy::kLeastCycles && *known <= policy::kMostCycles) return *known;
  const std::optional<double> measured = measure();
  if (!measured) return policy::kUsualCycles;
  const int cycles =
      static_cast<int>(std::clamp<double>(*measured, policy::kLeastCycles, policy::kMostCycles));
  if (cycles < policy::kCyclesOfPiece) kept.keep(which, cycles);
  return cycles;
}

}  // namespace janus::kernels
