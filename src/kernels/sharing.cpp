// See sharing.h.
#include "kernels/sharing.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/check.h"
#include "base/thread_cost.h"
#include "base/thread_pool.h"
#include "jit/jit.h"

namespace janus::kernels {

namespace {

/// So many times the cost of handing out goes to a thread at least: two that do half of the work
/// each are then clearly faster than one that does it all.
constexpr double kMargin = 1.5;
/// Larger teams are taken to cost as much as this one.
constexpr int kMostThreads = 256;

/// What was found out for each number of threads, of OpenMP's team and of our own; 0: nothing yet.
using Figures = std::array<std::atomic<int>, kMostThreads + 1>;
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
  auto& figure = (is_openmp ? figures_of_openmp
                            : figures_of_own)[static_cast<size_t>(std::min(threads, kMostThreads))];
  if (const int known = figure.load(std::memory_order_relaxed)) return known;
  if (options().is_disabled(kThreadCostSwitch.name)) return kUsualCycles;
  // Other threads go by the usual figure meanwhile.
  if (int none = 0; !figure.compare_exchange_strong(none, kUsualCycles)) return none;
  const int cycles = kept_or_measured(jit::KeptChoices::of("threads"), name_of(threads, is_openmp),
                                      cycles_of_handing_out);
  log("time", cat("work is handed to ", threads, " threads in ", cycles, " cycles"));
  figure = cycles;
  return cycles;
}

}  // namespace

int64_t work_per_thread() {
  static const int64_t lanes = jit::vector_bytes() / static_cast<int64_t>(sizeof(float));
  const int threads = thread_count();
  const int cycles = threads == 1 ? kUsualCycles : cycles_for(threads);
  return std::max(kLeastWorkPerThread, static_cast<int64_t>(kMargin * cycles) * lanes);
}

bool outweighs_handing_out(int64_t work) {
  return thread_count() > 1 && work / 2 >= work_per_thread();
}

int64_t least_pieces(int64_t work, int64_t pieces) {
  if (!is_worth_sharing(work)) return std::max<int64_t>(pieces, 1);
  const int64_t work_of_one = std::max<int64_t>(work / pieces, 1);
  return (work_per_thread() + work_of_one - 1) / work_of_one;
}

int kept_or_measured(jit::KeptChoices& kept, const std::string& which,
                     const std::function<std::optional<double>()>& measure) {
  const auto known = kept.find(which);
  if (known && *known >= kLeastCycles && *known <= kMostCycles) return *known;
  const std::optional<double> measured = measure();
  if (!measured) return kUsualCycles;
  const int cycles = static_cast<int>(std::clamp<double>(*measured, kLeastCycles, kMostCycles));
  if (cycles < kCyclesOfPiece) kept.keep(which, cycles);
  return cycles;
}

}  // namespace janus::kernels
