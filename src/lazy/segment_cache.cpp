#include "lazy/segment_cache.h"

#include <algorithm>

#include "base/ab_test.h"
#include "base/options.h"
#include "base/policy.h"
#include "base/steady_time.h"
#include "execute/program/program.h"
#include "lazy/call_form.h"
#include "lazy/compiling_program.h"
#include "lazy/segment_graph.h"
#include "lazy/segment_values.h"
#include "speculate/ab_measurement.h"
#include "torch/interception_keys.h"
#include "torch/tensor.h"

namespace janus::lazy {

using execute::Slot;

namespace {

/// The graph of a segment, compiled.
class CompiledSegment {
 public:
  explicit CompiledSegment(SegmentGraph made)
      : made_(std::move(made)), compiling_(std::move(made_.graph), std::move(made_.shown)) {}

  bool is_ready() {
    if (program_ != nullptr) return true;
    program_ = compiling_.take_if_done();
    if (program_ != nullptr)
      for (const std::string& name : program_->cells())
        cells_.push_back(&*std::ranges::find(made_.cells, name, &SegmentGraph::Cell::name));
    return program_ != nullptr;
  }

  /// False, with nothing changed, if the run failed.
  bool run(const Segment& segment, const std::vector<c10::Scalar>& numbers) {
    std::vector<Slot> inputs, cells, results(made_.results.size()), rebound;
    for (const SegmentGraph::Input& each : made_.inputs)
      inputs.push_back(each.is_number
                           ? slot_of(numbers[each.number])
                           : tensor_slot(segment, each.storage, each.geometry, each.offset));
    for (const SegmentGraph::Cell* each : cells_)
      cells.push_back(tensor_slot(segment, each->storage, each->geometry, each->offset));
    if (program_->run(inputs, cells, results, rebound)) return false;
    for (size_t i = 0; i < results.size(); ++i)
      install(segment, made_.results[i], made_.shapes[i], torch::tensor_of(std::move(results[i])));
    return true;
  }

 private:
  static Slot tensor_slot(const Segment& segment, size_t storage, const Geometry& geometry,
                          int64_t offset) {
    return torch::slot_of(tensor_of(segment, storage, geometry, offset));
  }

  SegmentGraph made_;
  CompilingProgram compiling_;
  std::unique_ptr<execute::Program> program_;
  std::vector<const SegmentGraph::Cell*> cells_;
};

std::vector<c10::Scalar> numbers_of(const Segment& segment) {
  std::vector<c10::Scalar> numbers;
  for (const Event* event : segment.events)
    numbers.insert(numbers.end(), event->numbers.begin(), event->numbers.end());
  return numbers;
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
        compiled_ = std::make_unique<CompiledSegment>(std::move(*made));
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
    const bool by_graph = test_.is_over() || !test_.next_is_old();
    const double start = steady_seconds();
    bool has_run = false;
    if (by_graph) has_run = compiled_->run(segment, numbers);
    if (!has_run) {
      run_one_by_one(segment, done);
      if (by_graph) give_up(counts);
    }
    if (!test_.is_over() && !is_given_up_) {
      test_.add(steady_seconds() - start);
      if (test_.verdict() == AbTest::Verdict::given_up) give_up(counts);
    }
    return has_run;
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
  std::unique_ptr<CompiledSegment> compiled_;
  AbTest test_;
};

SegmentCache::SegmentCache() = default;
SegmentCache::~SegmentCache() = default;

KnownSegment& SegmentCache::known(const Segment& segment) {
  auto& same_hash = known_[hash_of(segment.words)];
  for (const auto& each : same_hash)
    if (each->words == segment.words) return *each;
  ++counts_.structures;
  return *same_hash.emplace_back(std::make_unique<KnownSegment>(segment));
}

bool SegmentCache::run(const Segment& segment, size_t& done) {
  const torch::NotIntercepted scope;
  return known(segment).run(segment, families_, counts_, done);
}

}  // namespace janus::lazy
