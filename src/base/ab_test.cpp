#include "base/ab_test.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/policy.h"

namespace janus {

namespace {

double median(std::vector<double> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

/// Whether the old variant comes first in that pair of runs. Pseudo-random, the same every time.
bool old_comes_first(uint64_t pair) {
  uint64_t bits = (pair + 1) * 0x9E3779B97F4A7C15;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
  return ((bits ^ (bits >> 27)) >> 40) % 2 == 1;
}

/// Standard deviations by which the first times rank behind the second: the Mann-Whitney test. An
/// outlier counts as one bad rank only.
double lag(const std::vector<double>& first, const std::vector<double>& second) {
  double behind = 0;
  for (const double a : first)
    for (const double b : second) behind += a > b ? 1 : a == b ? 0.5 : 0;
  const auto n = static_cast<double>(first.size()), m = static_cast<double>(second.size());
  return (behind - n * m / 2) / std::sqrt(n * m * (n + m + 1) / 12);
}

}  // namespace

bool AbTest::next_is_old() const {
  if (is_over()) return false;
  const size_t runs = new_.size() + old_.size();
  return old_comes_first(runs / 2) == (runs % 2 == 0);
}

void AbTest::add(double time) {
  if (is_over()) return;
  (next_is_old() ? old_ : new_).push_back(time);
  if (new_.size() == old_.size()) decide();
}

double AbTest::with_new() const { return new_.empty() ? 0 : median(new_); }
double AbTest::with_old() const { return old_.empty() ? 0 : median(old_); }

bool AbTest::has_enough() const { return std::min(new_.size(), old_.size()) >= policy::kLeastRuns; }

void AbTest::decide() {
  const size_t count = new_.size();
  if (count < policy::kLeastRuns) return;
  const bool wins = std::ranges::max(new_) < std::ranges::min(old_);
  const double behind = lag(new_, old_);
  if (wins || (count >= policy::kLeastRankedRuns && behind < policy::kClearlyFaster) ||
      count >= policy::kMostRuns)
    verdict_ = Verdict::kept;
  if (count >= policy::kLeastRunsToGiveUp && behind > policy::kClearlySlower &&
      with_new() > with_old() * policy::kAsGood)
    verdict_ = Verdict::given_up;
}

}  // namespace janus
