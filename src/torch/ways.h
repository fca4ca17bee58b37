// Several ways to compute the same: which is the fastest is found out by doing it.
#pragma once

#include <torch/headeronly/version.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/policy.h"
#include "base/steady_time.h"
#include "jit/tuning_cache.h"

namespace janus::torch {

/// For tests: this way is taken, or the last there is, whatever it costs; below 0: the fastest.
inline std::atomic<int> forced_way = -1;

/// Set where ways were compared; whoever gives back the memory that it took clears it.
inline std::atomic<bool> ways_were_compared = false;

/// The fastest way for each case that came up. All cases of one kind share an object of this class,
/// on any number of threads.
template <class Case>
class Ways {
 public:
  /// A case as a text without spaces, all that its times depend on but the machine and torch.
  using Text = std::string (*)(const Case&);
  /// By case and names the choices are kept on disk: the next process need not compare the ways.
  Ways(std::vector<std::string_view> names, Text text) : names_(std::move(names)), text_(text) {}

  /// The fastest of the first `count` ways, timed when a case comes up for the first time:
  /// `run(way)` must be repeatable. Another way than the first has to be clearly faster.
  template <class Run>
  int choose(const Case& which, size_t count, const Run& run) {
    if (forced_way >= 0) return std::min<int>(forced_way, static_cast<int>(count) - 1);
    {
      const std::lock_guard lock(mutex_);
      const auto found = chosen_.find(which);
      if (found != chosen_.end()) return found->second;
    }
    const int way = kept_or_fastest(which, count, run);
    const std::lock_guard lock(mutex_);
    return chosen_.emplace(which, way).first->second;
  }

 private:
  template <class Run>
  int kept_or_fastest(const Case& which, size_t count, const Run& run) {
    jit::TuningCache& kept = jit::TuningCache::of("torch " TORCH_VERSION);
    std::string text = text_(which);
    for (size_t way = 0; way < count; ++way) text += cat('/', names_[way]);
    if (const auto way = kept.find(text); way && *way >= 0 && static_cast<size_t>(*way) < count)
      return *way;
    const int way = fastest(count, run);
    kept.keep(text, way);
    return way;
  }

  template <class Run>
  static int fastest(size_t count, const Run& run) {
    std::vector<double> least(count);
    for (int repetition = 0; repetition < policy::kTunedRepetitions; ++repetition) {
      for (size_t way = 0; way < count; ++way) {
        const double start = steady_seconds();
        run(static_cast<int>(way));
        const double taken = steady_seconds() - start;
        double& seconds = least[static_cast<size_t>(way)];
        seconds = repetition == 0 ? taken : std::min(seconds, taken);
      }
    }
    ways_were_compared = true;
    least[0] *= policy::kClearlyFasterCandidate;
    return static_cast<int>(std::ranges::min_element(least) - least.begin());
  }

  const std::vector<std::string_view> names_;
  const Text text_;
  std::mutex mutex_;
  std::map<Case, int> chosen_;
};

}  // namespace janus::torch
