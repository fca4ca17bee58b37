#include "speculate/region_account.h"

#include <algorithm>
#include <utility>

#include "base/policy.h"

namespace janus::speculate {
namespace {

// Chosen, not measured.

/// Calls before one is profiled: of what is called once or twice, no graph would ever run.
constexpr uint64_t kCallsBeforeProfiling = 2;
/// Share of the time so far that a graph may cost: what has run for some time will run as long
/// again.
constexpr double kShareThatGraphsCost = 1;
/// How long the program has to run again where converting did not pay in an earlier run, in times
/// of that run: what it would find out is new only if it is longer.
constexpr double kTimesAsLongAsEarlier = 2;
/// Milliseconds of processor time between two questions whether the account covers a graph.
constexpr double kBetweenQuestions = 5;
constexpr uint64_t kMostCallsBetweenQuestions = 1 << 16;
/// Share of the program's time that a region takes for which others wait.
constexpr double kShareOfMainRegion = 0.3;
/// Milliseconds for which they wait, after it has asked for a graph.
constexpr double kStillWaiting = 500;

/// The program's time when code that takes a good part of it asked in vain; negative: never.
double last_waiting = -1;

}  // namespace

void RegionAccount::open(const RegionKey& key) {
  is_open_ = true;
  earlier_ = earlier_run(key);
}

void RegionAccount::continue_from(const RegionAccount& whole, uint64_t calls) {
  expected_tensors_ = whole.tensors_to_expect().value_or(0);
  met_ = whole.met_;
  earlier_calls_ = whole.earlier_calls_ + calls;
}

bool RegionAccount::covers_graph(uint64_t calls, bool may_wait) {
  const ConversionAccount* const paying = account();
  is_short_ = false;
  if (paying == nullptr) return true;
  const double used = processor_milliseconds();
  if (met_ == 0) met_ = used;
  const double since_last_question = used - std::exchange(asked_, used);
  calls += earlier_calls_;
  if (calls > kCallsBeforeProfiling) {
    if (is_worth(*paying, calls, used)) {
      wait_ = 0;
      return true;
    }
    if (time_of(calls, used) > kShareOfMainRegion * (used - met_)) last_waiting = used;
  }
  is_short_ = true;
  if (may_wait) wait(since_last_question);
  return false;
}

bool RegionAccount::is_worth(const ConversionAccount& paying, uint64_t calls, double used) const {
  if (earlier_ && earlier_->has_paid() && spent_on_graphs_ == 0) return true;
  if (earlier_ && !earlier_->has_paid() && used - met_ < kTimesAsLongAsEarlier * earlier_->passed)
    return false;
  const double cost = paying.estimate(tensors_to_expect()), so_far = time_of(calls, used);
  if (would_have_paid(cost)) return true;
  return kShareThatGraphsCost * so_far >= cost && paying.covers(cost, used, so_far);
}

/// Whether a further graph, had it been there for the calls that fitted none, would by now have
/// saved what all of them cost, itself included.
bool RegionAccount::would_have_paid(double cost) const {
  return usual_gain_ > 0 &&
         saved_ + usual_gain_ * static_cast<double>(missed_) >= spent_on_graphs_ + cost;
}

bool RegionAccount::covers_probe(uint64_t calls) const {
  const ConversionAccount* const paying = account();
  if (paying == nullptr) return false;
  const double used = processor_milliseconds();
  const double cost = policy::kMillisecondsOfProbe + policy::kShareOfHooks * least_profiled_;
  return paying->covers(cost, used, time_of(calls + earlier_calls_, used));
}

std::optional<double> RegionAccount::tensors_to_expect() const {
  if (profiled_ != 0) return tensors_;
  if (expected_tensors_ != 0) return expected_tensors_;
  return std::nullopt;
}

/// What all calls took so far, or would have taken in Python; before one is profiled, at most that.
double RegionAccount::time_of(uint64_t calls, double used) const {
  const double whole = used - met_;
  if (profiled_ == 0) return whole;
  return std::min(whole, static_cast<double>(calls) * least_profiled_);
}

void RegionAccount::wait(double since_last_question) {
  const bool is_soon = since_last_question < kBetweenQuestions;
  wait_ = is_soon ? std::min(2 * wait_ + 1, kMostCallsBetweenQuestions) : wait_ / 2;
  calls_to_wait_ = wait_;
}

bool RegionAccount::is_any_waiting() {
  return last_waiting >= 0 && processor_milliseconds() - last_waiting < kStillWaiting;
}

void RegionAccount::begin_profiled_run() {
  if (account() != nullptr) profile_began_ = processor_milliseconds();
}

/// What is beyond the fastest run is the price of the copies with hooks; all of the first run,
/// until there is another one.
void RegionAccount::end_profiled_run(uint64_t tensors) {
  tensors_ = static_cast<double>(tensors);
  if (account() == nullptr) return;
  const double used =
      simulated_processor ? simulated_processor->of_run : processor_milliseconds() - profile_began_;
  const double without_hooks = (1 - policy::kShareOfHooks) * used;
  least_profiled_ = profiled_ == 0 ? without_hooks : std::min(least_profiled_, without_hooks);
  const double of_program = profiled_ == 0   ? 0
                            : profiled_ == 1 ? 2 * least_profiled_
                                             : least_profiled_;
  ++profiled_;
  spend(used - of_program);
}

void RegionAccount::spend(double milliseconds) {
  spent_ += milliseconds;
  if (ConversionAccount* const paying = account()) paying->spend(milliseconds);
}

void RegionAccount::spend_on_graph(double milliseconds) {
  spent_on_graphs_ += milliseconds;
  spent_on_graph_ += milliseconds;
  spend(milliseconds);
}

void RegionAccount::reserve_for_kernels() {
  if (const ConversionAccount* paying = account())
    reserve(std::max(0.0, paying->estimate(tensors_) - spent_on_graph_));
}

void RegionAccount::reserve(double milliseconds) {
  if (ConversionAccount* const paying = account()) paying->reserve(milliseconds - reserved_);
  reserved_ = milliseconds;
}

void RegionAccount::complete_graph() {
  reserve(0);
  if (ConversionAccount* const paying = account()) paying->learn(tensors_, spent_on_graph_);
}

void RegionAccount::save(double milliseconds, std::optional<double> gain) {
  ConversionAccount* const paying = account();
  if (paying == nullptr || profiled_ == 0) return;
  // One that took far longer was interrupted, as by a stop of the process.
  const double saved = std::max(gain.value_or(least_profiled_ - milliseconds), -least_profiled_);
  saved_ += saved;
  constexpr double kWeightOfNewest = 0.3;  // the first runs take longer than all others
  usual_gain_ += kWeightOfNewest * (saved - usual_gain_);
  paying->save(saved);
}

void RegionAccount::graph_ran_first() {
  if (ConversionAccount* const paying = account()) paying->succeeded();
}

void RegionAccount::give_up(double spent) {
  if (ConversionAccount* const paying = account()) paying->failed(spent);
}

std::optional<EarlierRun> RegionAccount::told() const {
  if (account() == nullptr || met_ == 0) return std::nullopt;
  return EarlierRun{spent_, saved_, processor_milliseconds() - met_};
}

}  // namespace janus::speculate
