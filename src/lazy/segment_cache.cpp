#include "lazy/segment_cache.h"

#include <algorithm>

#include "base/ab_test.h"
#include "base/options.h"
#include "base/policy.h"
#include "base/steady_time.h"
#include "lazy/call_form.h"
#include "lazy/compiled_segment.h"
#include "lazy/noted_dispatch.h"
#include "lazy/segment_graph.h"
#include "speculate/ab_measurement.h"
#include "torch/file_backed.h"
#include "torch/run_scope.h"

namespace janus::lazy {

namespace {

std::vector<c10::Scalar> numbers_of(const Segment& segment) {
  std::vector<c10::Scalar> numbers;
  for (const Event* event : segment.events)
    numbers.insert(numbers.end(), event->numbers.begin(), event->numbers.end());
  return numbers;
}

/// Whether memory that the system may drop, or another memory would be moved to, belongs to it.
bool is_any_in_file(const Segment& segment) {
  return std::ranges::any_of(segment.storages, [](const Segment::Storage& each) {
    return !each.is_made && torch::is_in_file(*each.node->contents().unsafeGetStorageImpl());
  });
}

bool same_number(const c10::Scalar& one, const c10::Scalar& other) {
  return !one.isComplex() && !other.isComplex() && bits_of(one) == bits_of(other);
}

}  // namespace

class KnownSegment {
 public:
  explicit KnownSegment(const Segment& segment) : words(segment.words) {}

  /// Whether a graph ran.
  bool run(const Segment& segment, SegmentFamilies& families, SegmentCache::Counts& counts,
           size_t& done) {
    const std::vector<c10::Scalar> numbers = numbers_of(segment);
    watch_numbers(numbers);
    ++runs_;
    if (compiled_ == nullptr && !is_given_up_ && is_worth_a_graph(segment))
      compile(segment, counts);
    if (is_ready(counts)) return run_or_compare(segment, numbers, counts, done);
    counts.waited += compiled_ != nullptr ? 1 : 0;
    const double start = steady_seconds();
    is_served_ = families.run(segment, [&] { run_one_by_one(segment, done); });
    seconds_ += steady_seconds() - start;
    return is_served_;
  }

  /// Begins to run the graph on the runner's thread. Null if there is none that is kept.
  std::unique_ptr<RunAhead> begin(const Segment& segment, SegmentCache::Counts& counts) {
    const std::vector<c10::Scalar> numbers = numbers_of(segment);
    if (runs_ > 0) watch_numbers(numbers);
    if (!is_ready(counts) || is_any_in_file(segment)) return nullptr;
    if (speculate::times_decide && test_.verdict() != AbTest::Verdict::kept) return nullptr;
    return std::make_unique<RunAhead>(compiled_, compiled_->prepare(segment, numbers));
  }

  /// As run(), for what began to run ahead.
  bool finish(const Segment& segment, RunAhead& ahead, SegmentCache::Counts& counts, size_t& done) {
    if (ahead.finish(segment, done)) return true;
    run_one_by_one(segment, done);
    give_up(counts);
    return false;
  }

  bool came_once() const { return runs_ <= 1; }

  const std::vector<uint64_t> words;

 private:
  /// Whether it comes often enough, and has taken as long as its graph probably will.
  bool is_worth_a_graph(const Segment& segment) const {
    const auto cost = static_cast<double>(segment.events.size()) * policy::kSecondsOfGraphPerCall;
    const int enough = is_served_ ? policy::kRunsInFamily : policy::kProfiledRuns;
    return runs_ > enough && (!speculate::times_decide || seconds_ >= cost);
  }

  bool is_ready(SegmentCache::Counts& counts) {
    try {
      return compiled_ != nullptr && compiled_->is_ready();
    } catch (const std::exception& error) {
      refuse(error.what(), counts);
      return false;
    }
  }

  /// A number that differs from its first value becomes an input, of a new graph.
  void watch_numbers(const std::vector<c10::Scalar>& numbers) {
    if (runs_ == 0) {
      first_numbers_ = numbers;
      varying_.assign(numbers.size(), false);
      return;
    }
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (varying_[i] || same_number(numbers[i], first_numbers_[i])) continue;
      varying_[i] = true;
      compiled_.reset();
    }
  }

  void compile(const Segment& segment, SegmentCache::Counts& counts) {
    std::string why;
    try {
      auto made = graph_of(segment, varying_, why);
      if (made) {
        compiled_ = std::make_shared<CompiledSegment>(std::move(*made));
        ++counts.graphs;
        return;
      }
    } catch (const std::exception& error) {
      why = error.what();
    }
    refuse(why, counts);
  }

  void refuse(const std::string& why, SegmentCache::Counts& counts) {
    log("speculate", "a segment stays without a graph: " + why);
    give_up(counts);
  }

  bool run_or_compare(const Segment& segment, const std::vector<c10::Scalar>& numbers,
                      SegmentCache::Counts& counts, size_t& done) {
    const bool is_compared = speculate::times_decide && !test_.is_over();
    const bool by_graph = !is_compared || !test_.next_is_old();
    const double start = steady_seconds();
    bool has_run = false;
    if (by_graph) has_run = run_graph(segment, numbers, done);
    if (!has_run) {
      run_one_by_one(segment, done);
      if (by_graph) give_up(counts);
    }
    if (is_compared && !is_given_up_) {
      test_.add(steady_seconds() - start);
      if (test_.verdict() == AbTest::Verdict::given_up) give_up(counts);
    }
    return has_run;
  }

  bool run_graph(const Segment& segment, const std::vector<c10::Scalar>& numbers, size_t& done) {
    CompiledSegment::Run run = compiled_->prepare(segment, numbers);
    compiled_->run(run);
    if (run.has_failed) return false;
    done = segment.events.size();  // even if no memory is left for a result
    compiled_->install(segment, std::move(run));
    return true;
  }

  void give_up(SegmentCache::Counts& counts) {
    ++counts.given_up;
    is_given_up_ = true;
    compiled_.reset();
  }

  static void run_one_by_one(const Segment& segment, size_t& done) {
    std::vector<std::vector<StorageNode*>> last_used(segment.events.size());
    for (const Segment::Storage& each : segment.storages)
      if (each.is_made && !each.is_wanted) last_used[each.last_use].push_back(each.node);
    for (const Event* event : segment.events) {
      run_eagerly(*event);
      for (StorageNode* const node : last_used[done]) node->drop_contents();
      ++done;
    }
  }

  int runs_ = 0;
  double seconds_ = 0;  ///< of the runs one by one
  bool is_given_up_ = false;
  bool is_served_ = false;  // by the graph of its family
  std::vector<c10::Scalar> first_numbers_;
  VaryingNumbers varying_;
  std::shared_ptr<CompiledSegment> compiled_;  ///< shared with what runs ahead
  AbTest test_;
};

SegmentCache::SegmentCache() = default;
SegmentCache::~SegmentCache() = default;

KnownSegment& SegmentCache::known(const Segment& segment) {
  if (met_ > policy::kMostStructures) forget_rare();
  auto& same_hash = known_[hash_of(segment.words)];
  for (const auto& each : same_hash)
    if (each->words == segment.words) return *each;
  ++counts_.structures;
  ++met_;
  return *same_hash.emplace_back(std::make_unique<KnownSegment>(segment));
}

/// Structures that came once, as in programs whose slices begin somewhere else in each iteration.
void SegmentCache::forget_rare() {
  met_ = 0;
  for (auto& [hash, same_hash] : known_)
    std::erase_if(same_hash, [](const auto& each) { return each->came_once(); });
  std::erase_if(known_, [](const auto& each) { return each.second.empty(); });
}

bool SegmentCache::run(const Segment& segment, size_t& done) {
  const NotedDispatch scope;
  const torch::WithoutPython without;  // a handler of signals would run within a look
  return known(segment).run(segment, families_, counts_, done);
}

std::unique_ptr<RunAhead> SegmentCache::begin(const Segment& segment) {
  const NotedDispatch scope;
  return known(segment).begin(segment, counts_);
}

bool SegmentCache::finish(const Segment& segment, RunAhead& ahead, size_t& done) {
  const NotedDispatch scope;
  const torch::WithoutPython without;
  return known(segment).finish(segment, ahead, counts_, done);
}

}  // namespace janus::lazy
