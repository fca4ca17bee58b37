#include "lazy/segment_family.h"

#include "base/policy.h"
#include "base/steady_time.h"
#include "lazy/call_node.h"
#include "speculate/ab_measurement.h"

namespace janus::lazy {

bool merges_traces = false;

bool SegmentFamilies::run(const Segment& segment, c10::function_ref<void()> one_by_one) {
  if (!merges_traces || segment.events.size() < policy::kFewestCallsOfFamily) {
    one_by_one();
    return false;
  }
  const OperatorRule* const last = segment.events.back()->kind->rule;
  return families_.try_emplace(last, context_).first->second.run(segment, one_by_one);
}

void FamilyCounts::add_miss(const std::string& missing) {
  constexpr size_t kMostUnread = 64;  // chosen, not measured
  ++missed;
  ++misses[missing];
  if (unread.size() >= kMostUnread) unread.erase(unread.begin());
  unread.push_back(missing);
}

bool FamilyContext::has_time() const {
  const double allowed =
      policy::kFreeGeneration / 1000 + policy::kShareOfGeneration * (steady_seconds() - begun);
  return !speculate::times_decide || making < allowed;
}

bool SegmentFamily::run(const Segment& segment, c10::function_ref<void()> one_by_one) {
  if (is_given_up_) {
    one_by_one();
    return false;
  }
  RecordedSegment recorded(segment, context_->identities);
  note_numbers(recorded);
  take_next();
  std::string missing;
  if (graph_ != nullptr) {
    ++followed_;
    const double start = steady_seconds();
    if (graph_->follow(recorded, missing))
      return run_or_compare(segment, steady_seconds() - start, one_by_one);
    miss(missing);
  }
  one_by_one();
  if (is_given_up_) return false;
  keep(segment, std::move(recorded));
  if (is_graph_due()) make_graph();
  context_->counts.waited += next_ != nullptr ? 1 : 0;
  return false;
}

void SegmentFamily::take_next() {
  try {
    if (next_ == nullptr || !next_->is_ready()) return;
    graph_ = std::move(next_);
    followed_ = missed_ = 0;
  } catch (const std::exception& error) {
    next_.reset();
    graphs_ = policy::kMostGraphsOfFamily;
    if (graph_ == nullptr) give_up(error.what());
  }
}

void SegmentFamily::note_numbers(const RecordedSegment& segment) {
  for (const RecordedSegment::Call& call : segment.calls) {
    if (call.numbers.empty()) continue;
    const uint32_t form = context_->forms.of(*call.kind).number;
    for (size_t i = 0; i < call.numbers.size(); ++i)
      context_->varying.note(form, i, call.numbers[i]);
  }
}

/// Segments of a family differ in length, so it is the time of a call that is compared.
bool SegmentFamily::run_or_compare(const Segment& segment, double following,
                                   c10::function_ref<void()> one_by_one) {
  const bool is_compared = speculate::times_decide && !test_.is_over();
  const bool by_graph = !is_compared || !test_.next_is_old();
  const double start = steady_seconds();
  const bool has_run = by_graph && graph_->run(segment);
  if (!has_run) one_by_one();
  if (by_graph && !has_run) {
    give_up("its graph failed");
    return false;
  }
  if (is_compared) {
    const double seconds = steady_seconds() - start + (by_graph ? following : 0);
    test_.add(seconds / static_cast<double>(segment.events.size()));
    if (test_.verdict() == AbTest::Verdict::given_up) give_up("its graph is slower");
  }
  if (has_run) context_->counts.calls += segment.events.size();
  return has_run;
}

void SegmentFamily::miss(const std::string& missing) {
  ++missed_;
  context_->counts.add_miss(missing);
  const bool is_settled = graphs_ >= policy::kMostGraphsOfFamily && next_ == nullptr;
  if (is_settled && followed_ >= policy::kMostMissesOfFamily && 2 * missed_ > followed_)
    give_up("its segments are always new");
}

void SegmentFamily::keep(const Segment& segment, RecordedSegment recorded) {
  if (segments_.size() >= policy::kMostTracesOfFamily) return;
  const uint64_t hash = hash_of(segment.words);
  const bool is_new = !segments_.contains(hash);
  segments_.insert_or_assign(hash, std::move(recorded));
  if (is_new || graph_ != nullptr) ++news_;
}

bool SegmentFamily::is_graph_due() const {
  if (next_ != nullptr || graphs_ >= policy::kMostGraphsOfFamily) return false;
  if (!context_->has_time()) return false;
  if (graph_ == nullptr) return segments_.size() >= policy::kStructuresOfFamily;
  return news_ * policy::kTracesPerNews >= segments_.size();
}

void SegmentFamily::make_graph() {
  const double start = steady_seconds();
  std::string why;
  news_ = 0;
  next_ = made(why);
  if (next_ == nullptr && sizes_vary_ && graph_ == nullptr) {
    log("speculate", "sizes of a family of segments do not vary: " + why);
    sizes_vary_ = false;
    next_ = made(why);
  }
  context_->making += steady_seconds() - start;
  if (next_ == nullptr && graph_ == nullptr) return give_up(why);
  if (next_ == nullptr) {  // the one there is goes on
    log("speculate", "a family of segments gets no better graph: " + why);
    graphs_ = policy::kMostGraphsOfFamily;
    return;
  }
  if (graphs_++ == 0) ++context_->counts.families;
  ++context_->counts.graphs;
  context_->counts.last = next_->form();
}

std::unique_ptr<FamilyGraph> SegmentFamily::made(std::string& why) {
  std::vector<RecordedSegment> all;
  for (const auto& [hash, segment] : segments_) all.push_back(segment);
  try {
    return std::make_unique<FamilyGraph>(all, context_->identities, context_->forms,
                                         context_->varying, sizes_vary_);
  } catch (const std::exception& error) {
    why = error.what();
    return nullptr;
  }
}

void SegmentFamily::give_up(const std::string& why) {
  log("speculate", "a family of segments is given up: " + why);
  is_given_up_ = true;
  ++context_->counts.given_up;
  graph_.reset();
  next_.reset();
  segments_.clear();
}

}  // namespace janus::lazy
