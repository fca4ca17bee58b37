// What becomes of calls that no graph takes: reasons, retries, and when a function is given up.
#include "speculate/dispatch.h"

#include <algorithm>
#include <cstdio>

#include "base/check.h"
#include "base/options.h"
#include "base/timeline.h"
#include "speculate/reason_lifetime.h"
#include "speculate/reason_record.h"

namespace janus::speculate {

/// Whether graphs are often left for what is refused: the rest of such calls would gain from a cut.
bool Dispatcher::is_often_left() const {
  constexpr uint64_t kLeast = 20, kRatio = 2;  // a third of the runs; chosen, not measured
  const uint64_t left = counters_.aborts + counters_.misses;
  return left >= kLeast && left * kRatio > counters_.hits;
}

const Reason* Dispatcher::refusal_to_cut() const {
  if (!last_refusal_) return nullptr;
  const bool is_given_up = was_left_for_refused_ && (is_unstable_ || is_often_left());
  if (counters_.generated > 0 && !is_given_up) return nullptr;
  const ReasonCode code = last_refusal_->code;
  if (code == ReasonCode::no_tensor_work || code == ReasonCode::internal_error) return nullptr;
  const bool is_certain = is_permanent(code);  // for instance, a callee has no source
  return is_certain || is_given_up || refusals_ >= policy::kRefusalsBeforeCut ? &*last_refusal_
                                                                              : nullptr;
}

void Dispatcher::refused(const Reason& refusal) {
  // Code without tensor work needs no report. It may get some later: loops warm up.
  const bool has_work = may_have_work() || refusal.code == ReasonCode::internal_error;
  const Reason reason = has_work ? refusal : Reason{ReasonCode::no_tensor_work, name_, {}};
  if (!has_work) runs_left_ = 1;
  note(reason);
  ++refusals_;
  last_refusal_ = reason;
  reach("refused");
  if (reason.code == ReasonCode::internal_error) throw InternalError(reason.details);
  if (!entries_.empty()) return;
  // A part without tensor work has been tried in earlier calls of the whole.
  const int most = is_part && !has_work ? policy::kMostRefusals / 2 : policy::kMostRefusals;
  if (is_permanent(reason.code) || refusals_ >= most)
    return reason.code == ReasonCode::no_tensor_work ? give_up_without_work(reason)
                                                     : disable(reason);
  fall_back(reason);
  // Another call may be convertible: retries at once, then ever more rarely.
  retry_at_ = counters_.calls + (refusals_ == 1 ? 1 : refusals_ == 2 ? 10 : 100);
}

void Dispatcher::give_up_without_work(const Reason& reason) {
  constexpr uint64_t kLeastRuns = 100;  // chosen, not measured
  disable(reason);
  look_again_at_ = counters_.passed + std::max(kLeastRuns, counters_.calls + counters_.passed);
}

void Dispatcher::look_again() {
  is_disabled_ = false;
  has_looked_again_ = true;
  look_again_at_ = 0;
  saw_tensor_ = false;
  runs_left_ = 1;
  refusals_ = 0;
  retry_at_ = 0;
  last_refusal_.reset();
}

void Dispatcher::penalise(int amount, const std::string& why) {
  penalty_ += amount;
  if (penalty_ <= policy::kMostPenalty) return;
  is_unstable_ = true;
  disable({ReasonCode::unstable, why, {}});
}

void Dispatcher::disable(Reason reason) {
  look_again_at_ = 0;
  if (is_disabled_) return;
  note(reason);
  entries_.clear();
  compiling_.reset();
  account.release_reserve();
  fall_back(reason);
  is_disabled_ = true;
}

void Dispatcher::start_over(Reason reason) {
  note(std::move(reason));
  entries_.clear();
  compiling_.reset();
  account.release_reserve();
  outgrown_.reset();
  is_disabled_ = is_cut_ = is_unstable_ = holds_graphs_ = pending_ = false;
  runs_left_ = options_.profile_runs;
  refusals_ = penalty_ = pause_ = calls_to_pause_ = looked_ahead_ = 0;
  is_probed_ = false;
  last_refusal_.reset();
  was_left_for_refused_ = false;
  retry_at_ = 0;
  aborts_of_.clear();
  refusals_of_.clear();
  graphs_of_.clear();
  observations_.forget();
  texts_are_inputs_ = true;
}

void Dispatcher::disable_as_cut() {
  entries_.clear();
  compiling_.reset();
  account.release_reserve();
  is_disabled_ = is_cut_ = true;
}

/// Except for internal errors, which become exceptions elsewhere, and calls without tensor work,
/// where nothing is lost.
void Dispatcher::fall_back(const Reason& reason) {
  if (!options().strict || reason.code == ReasonCode::internal_error ||
      reason.code == ReasonCode::no_tensor_work) {
    fallback_.reset();
    return;
  }
  fallback_ = located(reason);
  throw StrictFallback{cat("torchjanus: ", name_, " stays imperative: ", fallback_->describe())};
}

void StrictFallback::raise() const { PyErr_SetString(PyExc_RuntimeError, message.c_str()); }

Reason Dispatcher::located(Reason reason) const {
  if (!reason.span.known() && !file_.empty()) {
    reason.span.file = std::make_shared<const std::string>(file_);
    reason.span.line = reason.span.end_line = line_;
  }
  return reason;
}

void Dispatcher::note(Reason unlocated) {
  Reason reason = located(std::move(unlocated));
  record(reason.code, reason.details);
  if (Timeline::is_kept()) [[unlikely]] {
    const double time = steady_seconds();
    Timeline::add("reason", reason.code_name(), time, time, reason.describe());
  }
  for (Noted& each : reasons_) {
    if (each.reason.code != reason.code || each.reason.span.line != reason.span.line ||
        each.reason.details != reason.details)
      continue;
    ++each.count;
    return;
  }
  log("speculate", cat(name_, ": ", reason.describe()), 2);
  if (reasons_.size() >= policy::kMostReasons) reasons_.pop_front();
  reasons_.push_back({std::move(reason)});
}

/// Memory ran out: neither a bug nor permanent. The call runs in Python, which may need less, or
/// raises its own error. Some calls later a graph is tried again.
Dispatcher::Attempt Dispatcher::out_of_memory(bool committed) {
  PyErr_Clear();
  compiling_.reset();
  account.release_reserve();
  pause();
  retry_at_ = counters_.calls + policy::kCallsWithoutMemory;
  try {
    const Reason reason{ReasonCode::limit, "memory ran out: the call runs in Python", {}};
    note(reason);
    if (options().strict) fall_back(reason);
  } catch (const StrictFallback& fallback) {
    fallback_.reset();
    fallback.raise();
    return {true, {}, Otherwise::plain};
  } catch (const std::bad_alloc&) {  // not enough for the report either
  }
  if (!committed) return {};
  PyErr_NoMemory();
  return {true, {}, Otherwise::plain};
}

Dispatcher::Attempt Dispatcher::internal_error(const std::string& what, bool committed) {
  disable({ReasonCode::internal_error, what, {}});
  std::fputs(
      cat("torchjanus: internal error in ", name_, " (", file_, ":", line_, "): ", what,
          "\n  The function runs eagerly from now on. Please report this with the function's "
          "source; TORCHJANUS_STRICT=1 makes it an exception.\n")
          .c_str(),
      stderr);
  if (!committed && !options().strict) return {};
  // After a commit, an imperative run would repeat the effects.
  PyErr_SetString(PyExc_RuntimeError, cat("torchjanus: internal error: ", what).c_str());
  return {true, {}, Otherwise::plain};
}

}  // namespace janus::speculate
