// What a look, or the end of a cycle, leaves to the runner's thread.
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "base/options.h"
#include "base/policy.h"
#include "base/steady_time.h"
#include "lazy/run_ahead.h"
#include "lazy/segment_cache.h"
#include "lazy/session.h"
#include "speculate/ab_measurement.h"
#include "torch/interception_keys.h"

namespace janus::lazy {

/// The next call may begin another cycle, as the first one with a parameter comes again: work of
/// several cycles would hardly ever have the structure of work that came before. Or it begins a
/// backward pass, which Python calls while the forward pass can run.
void Session::end_cycle_before(const CallKind& kind) {
  const bool records = at::GradMode::is_enabled();
  const bool ends_forward = std::exchange(records_, records) && !records;
  const bool ends_cycle = begins_cycle(kind);
  const bool runs_ahead = choice_ != nullptr && choice_->is_ahead();
  const size_t waiting = pending_.size() - (ahead_ ? ahead_->calls.size() : 0);
  if (waiting >= policy::kFewestCallsOfCycle && (ends_cycle || (ends_forward && runs_ahead))) {
    if (ahead_) finish_ahead();
    leave_work();
    if (ends_cycle && !ahead_) run_pending();
  }
  if (cycle_.kind != nullptr) return;
  const auto parameter = std::ranges::find_if(parts_.tensors, [](const at::Tensor* tensor) {
    return tensor->requires_grad() && tensor->is_leaf();
  });
  if (parameter != parts_.tensors.end()) cycle_ = {&kind, storage_of(**parameter)};
}

bool Session::begins_cycle(const CallKind& kind) const {
  return cycle_.kind == &kind && std::ranges::any_of(parts_.tensors, [&](const auto* tensor) {
           return storage_of(*tensor) == cycle_.parameter;
         });
}

/// A look, or the end of a cycle, may have left pending calls. What runs when depends on nothing
/// but the calls and looks, so that equal iterations have equal segments.
void Session::leave_work() {
  if (thread_ != std::this_thread::get_id()) return;  // another thread looks
  cycle_ = {};
  if (pending_.empty() || !may_run_ahead()) return;
  if (!speculate::times_decide && !choice_->is_ahead()) choice_->keep();
  const bool ends_stretch = choice_->leaves_work();
  if (choice_->is_ahead() && !ahead_) begin_ahead();
  if (!ends_stretch) return;
  run_pending();
  choice_->end_stretch(reading());
}

bool Session::may_run_ahead() const {
  return choice_ != nullptr && memory_limit == 0 && torch::is_intercepted() &&
         !options().is_disabled(kGraphRunnerSwitch.name);
}

AheadChoice::Reading Session::reading() const {
  const SegmentCache::Counts& segments = segments_->counts();
  return {.now = steady_seconds(),
          .in_segments = seconds_in_segments_,
          .noted = counts_.noted,
          .in_graphs = counts_.run_in_graphs,
          .ahead = counts_.ahead,
          .news = segments.graphs + segments.given_up + segments.waited};
}

/// Gives all live calls to the runner, or runs them here if they have no graph yet.
void Session::begin_ahead() {
  std::vector<PendingCall*> calls = pending_.needed_for_all();
  if (calls.size() < policy::kFewestNotedCalls) return;
  Segment segment = segment_of(calls);
  std::unique_ptr<RunAhead> begun = segments_->begin(segment);
  if (begun == nullptr)
    return run_by(calls, [&](size_t& done) { return segments_->run(segment, done); });
  for (PendingCall* const call : calls) call->is_running = true;
  ahead_ = {std::move(calls), std::move(segment), std::move(begun)};
  ++counts_.ahead;
}

void Session::finish_ahead() {
  const Ahead ahead = std::move(*ahead_);
  ahead_.reset();
  for (PendingCall* const call : ahead.calls) call->is_running = false;
  run_by(ahead.calls,
         [&](size_t& done) { return segments_->finish(ahead.segment, *ahead.run, done); });
  counts_.seconds_waited += ahead.run->seconds_waited();
  counts_.seconds_ahead += ahead.run->seconds();
}

/// Runs what is live.
void Session::run_pending() {
  if (ahead_) finish_ahead();
  run(pending_.needed_for_all());
}

}  // namespace janus::lazy
