// See parallel_overhead.h.
#include "base/parallel_overhead.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/policy.h"
#include "base/steady_time.h"
#include "base/thread_pool.h"

namespace janus {

namespace {

/// Additions that depend on each other: each takes a cycle.
void work_off_piece() {
  int64_t sum = 0;
  for (int64_t i = 0; i < policy::kCyclesOfPiece; ++i) {
    sum += i;
    asm volatile("" : "+r"(sum));
  }
}

double seconds_of_piece() {
  double least = 1;
  for (int repetition = 0; repetition < policy::kPieceRepetitions; ++repetition) {
    const double start = steady_seconds();
    work_off_piece();
    least = std::min(least, steady_seconds() - start);
  }
  return least;
}

/// nullopt unless each piece ran as a range of its own.
std::optional<double> seconds_of_all_pieces(int threads) {
  std::atomic<int> ranges = 0;
  const double start = steady_seconds();
  parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
    ++ranges;
    for (int64_t i = begin; i < end; ++i) work_off_piece();
  });
  const double taken = steady_seconds() - start;
  return ranges == threads ? std::optional(taken) : std::nullopt;
}

}  // namespace

std::optional<double> parallel_overhead_cycles() {
  const int threads = thread_count();
  // A first loop starts the threads.
  if (threads == 1 || !seconds_of_all_pieces(threads)) return std::nullopt;
  std::vector<double> times;
  const double begin = steady_seconds();
  do {
    const double next = steady_seconds() + policy::kSecondsBetween;
    while (steady_seconds() < next) continue;
    const auto taken = seconds_of_all_pieces(threads);
    if (!taken) return std::nullopt;
    times.push_back(*taken);
  } while (times.size() < policy::kSharingRepetitions &&
           steady_seconds() - begin < policy::kSharingSeconds);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  const double piece = seconds_of_piece();
  return std::max(0.0, *middle - piece) / piece * static_cast<double>(policy::kCyclesOfPiece);
}

}  // namespace janus
