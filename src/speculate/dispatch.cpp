#include "speculate/dispatch.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/options.h"
#include "base/policy.h"
#include "base/timeline.h"
#include "speculate/active_tracer.h"
#include "speculate/hooks.h"
#include "speculate/stages.h"
#include "speculate/test_number.h"

namespace janus::speculate {
namespace {

std::vector<Dispatcher*>& registry() {
  static std::vector<Dispatcher*> all;
  return all;
}

double first_profile = -1, first_graph = -1;

std::string key_of(const std::vector<ChosenOutcome>& outcomes) {
  std::string key;
  for (const ChosenOutcome& each : outcomes)
    key +=
        cat(static_cast<const void*>(each.facts_key.get()), ":", each.fact, ":", each.outcome, ";");
  return key;
}

GraphTest with_number(GraphTest test) {
  test.fact = test_number(test.fact, test.span.line);
  return test;
}

/// `outcomes` with the other side of this test.
std::vector<ChosenOutcome> flipped(std::vector<ChosenOutcome> outcomes, const GraphTest& test) {
  for (ChosenOutcome& each : outcomes) {
    if (!each.facts_key.is(test.facts_key.get()) || each.fact != test.fact) continue;
    each.outcome = !test.outcome;
    return outcomes;
  }
  outcomes.push_back({test.facts_key, test.fact, !test.outcome});
  return outcomes;
}

/// Whether the exception must reach the user, wherever it occurs: Ctrl-C, sys.exit, RecursionError.
bool is_for_the_user() {
  return PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0 ||
         PyErr_ExceptionMatches(PyExc_SystemExit) != 0 ||
         PyErr_ExceptionMatches(PyExc_RecursionError) != 0;
}

/// What is pending was left by calls before the one that is timed from now on.
void settle_before_timing() {
  if (times_decide) tensor_access().ordinary_execution().reset();
}

std::optional<Mismatch> checked(const Entry& entry, const Call& call,
                                const Environment& environment,
                                std::vector<python::Object>& captured) {
  const TimelineSpan span("guards", "guards");
  return entry.guards().check(call, environment, captured);
}

}  // namespace

Dispatcher::Dispatcher(std::string name, std::string file, int line, DispatchOptions options)
    : name_(std::move(name)),
      file_(std::move(file)),
      line_(line),
      options_(options),
      runs_left_(options.profile_runs) {
  registry().push_back(this);
}

Dispatcher::~Dispatcher() { std::erase(registry(), this); }

thread_local Dispatcher::GraphRuns Dispatcher::graph_runs;

const std::vector<Dispatcher*>& Dispatcher::all() { return registry(); }

double Dispatcher::seconds_until_first_graph() {
  return first_graph < 0 || first_profile < 0 ? -1 : (first_graph - first_profile) / 1000;
}

Dispatcher::State Dispatcher::state() const {
  if (is_disabled_) return is_cut_ ? State::cut : State::imperative;
  if (!entries_.empty()) return State::graph;
  if (is_compiling()) return State::compiling;
  return refusals_ == 0 ? State::profiling : State::imperative;
}

Dispatcher::Attempt Dispatcher::attempt(const Call& call) {
  bool committed = false;
  TimelineSpan span("call", name_);
  try {
    Attempt attempt = attempt_unguarded(call, committed);
    span.details = attempt.ran ? "as a graph" : "left to Python";
    if (attempt.otherwise == Otherwise::profile) {
      graph_runs_before_ = graph_runs;
      account.begin_profiled_run();
    }
    return attempt;
  } catch (const StrictFallback& fallback) {
    fallback.raise();
    return {true, {}, Otherwise::plain};
  } catch (const python::ErrorSet&) {
    if (committed || is_for_the_user()) return {true, {}, Otherwise::plain};
    if (PyErr_ExceptionMatches(PyExc_MemoryError) != 0) return out_of_memory(committed);
    return internal_error(python::take_error_message(), committed);
  } catch (const std::bad_alloc&) {
    return out_of_memory(committed);
  } catch (const std::exception& error) {
    if (PyErr_Occurred() != nullptr) PyErr_Clear();
    return internal_error(error.what(), committed);
  } catch (...) {
    if (PyErr_Occurred() != nullptr) PyErr_Clear();
    return internal_error("an unknown C++ exception", committed);
  }
}

Dispatcher::Attempt Dispatcher::attempt_unguarded(const Call& call, bool& committed) {
  if (is_disabled_) return {};
  if (history_.wants(counters_.calls)) [[unlikely]]
    history_.note(counters_.calls, now(), progress());
  ++counters_.calls;
  if (fallback_) fall_back(Reason(*fallback_));
  if (generator() == nullptr || !has_tensor_access()) {
    note({ReasonCode::internal_error, "this build has no graph generator", {}});
    return {};
  }
  const Environment environment = tensor_access().environment();
  if (const char* tracer = active_tracer(environment)) {
    ++counters_.bypassed;
    note({ReasonCode::mode_active, tracer, {}});
    return {};
  }
  if (generating_) return {};
  if (is_compiling() && admit()) reach("ready");
  if (is_compiling() && entries_.empty()) return look_ahead(call, environment, committed);
  if (entries_.empty()) return profile_or_generate(call, environment, committed);
  if (is_without_graphs(environment)) return {};
  if (calls_to_pause_ > 0) {
    --calls_to_pause_;
    ++counters_.misses;
    return {};
  }
  Attempt attempt = try_entries(call, environment, committed);
  if (attempt.otherwise == Otherwise::profile) ++news_;
  if (attempt.awaits_graph) measurement_.leave_out();
  return attempt;
}

bool Dispatcher::is_without_graphs(const Environment& environment) {
  if (is_part) return false;  // the whole is measured, not its parts
  if (!measurement_.test().is_over()) settle_before_timing();
  const bool is_without = measurement_.begins(news_, environment.grad_enabled);
  const AbTest& test = measurement_.test();
  if (test.verdict() == AbTest::Verdict::given_up)
    disable({ReasonCode::limit,
             cat("a call of ", name_, " takes ", test.with_new(), " ms as a graph and ",
                 test.with_old(), " ms in Python"),
             {}});
  return is_without || is_disabled_;
}

Dispatcher::Attempt Dispatcher::profile_or_generate(const Call& call,
                                                    const Environment& environment,
                                                    bool& committed) {
  if (first_profile < 0) first_profile = now();
  if (first_met_ == 0) first_met_ = now();
  if (counters_.calls < retry_at_) return {};
  if (!is_covered()) {
    if (!may_probe()) return {};
    if (runs_left_ == 0) {
      probe(call);
      return {};
    }
  }
  if (runs_left_ > 0) {
    if (!is_part) {
      settle_before_timing();
      measurement_.profiled();
    }
    observe(call);
    tensors_before_ = ProfileRun::tensors_seen();
    return {false, {}, Otherwise::profile};
  }
  if (has_looked_again_ && !saw_tensor_) {
    give_up_without_work({ReasonCode::no_tensor_work, name_, {}});
    return {};
  }
  if (!may_generate()) return {};
  if (times_decide && is_graphs_already()) {
    holds_graphs_ = true;
    disable({ReasonCode::limit,
             cat(name_, " runs as ", graph_runs_within_.count, " graphs already, for ",
                 std::lround(100 * graph_runs_within_.milliseconds / profiled_), " % of its time"),
             {}});
    return {};
  }
  if (counters_.generated > 0) {
    if (!can_afford_generation()) return {};
    if (!std::exchange(went_unused_, false))
      penalise(policy::kPenaltyOfGoneGraphs,
               "the objects that graphs were made for no longer exist");
    if (is_disabled_) return {};
  }
  // A segment is profiled once: what its variables do from call to call shows by now.
  if (counters_.generated == 0 && options_.profile_runs == policy::kProfiledRunsOfSegment)
    observe(call);
  return generate_and_run(call, environment, {}, committed);
}

bool Dispatcher::is_graphs_already() const {
  const bool are_many = graph_runs_within_.count >= policy::kManyGraphs;
  return graph_runs_within_.milliseconds >
         (are_many ? policy::kMostShareInManyGraphs : policy::kMostShareInGraphs) * profiled_;
}

/// Tries the graphs of the cache, the one that fitted last first.
Dispatcher::Attempt Dispatcher::try_entries(const Call& call, const Environment& environment,
                                            bool& committed) {
  std::optional<Mismatch> mismatch;
  std::vector<Outcomes> wanted;
  std::vector<python::Object> captured;
  outgrown_.reset();
  drop_retired();
  std::shared_ptr<void> ordinary;      // once a graph fits: what stays in Python may stay pending
  std::shared_ptr<Entry> passed_over;  // the first one whose check was cut short
  for (size_t i = 0; i < entries_.size(); ++i) {
    const std::shared_ptr<Entry> entry = entries_[i];
    if (entries_.size() > 1 && entry->guards().fail_again(call)) {
      ++entry->misses;
      if (!mismatch && passed_over == nullptr) passed_over = entry;
      continue;
    }
    if (auto found = checked(*entry, call, environment, captured)) {
      ++entry->misses;
      if (!mismatch) mismatch = std::move(found);
      continue;
    }
    if (ordinary == nullptr && (ordinary = tensor_access().ordinary_execution()) != nullptr) {
      captured = {};  // other threads may have run while it waited, so all is checked again
      --i;
      continue;
    }
    Attempt attempt;
    Outcomes better;
    const Result result = run_entry(entry, std::move(captured), attempt.result, committed, better);
    captured = {};
    if (result == Result::left) {
      wanted.push_back(std::move(better));
      continue;
    }
    attempt.ran = true;
    // A graph that ran after another one bailed out moves to the front of the cache the second time
    // in a row: with a test that alternates, that would be wrong each time. Before it has run
    // often, the order in which graphs were made tells which outcomes still lack one.
    constexpr uint64_t kManyRuns = 20;  // chosen, not measured
    const Entry* const before =
        std::exchange(ran_after_bailout_, wanted.empty() ? nullptr : entry.get());
    const bool moves = wanted.empty() || (before == entry.get() && entry->hits > kManyRuns);
    const auto place = std::find(entries_.begin(), entries_.end(), entry);
    if (moves && place != entries_.end() && place != entries_.begin()) {
      entries_.erase(place);
      entries_.push_front(entry);
    }
    return attempt;
  }
  if (!wanted.empty()) return left(call, environment, wanted, committed);
  if (passed_over != nullptr)
    if (auto found = passed_over->guards().check(call, environment, captured))
      mismatch = std::move(found);
  if (!mismatch)
    mismatch = Mismatch{
        {ReasonCode::guard_failed, "an object that the graph was made for no longer exists", {}},
        {},
        true};
  return missed(call, environment, *mismatch, committed);
}

Dispatcher::Result Dispatcher::run_entry(const std::shared_ptr<Entry>& entry,
                                         std::vector<python::Object> captured,
                                         python::Object& result, bool& committed,
                                         Outcomes& wanted) {
  using Failure = execute::Failure;
  if (const auto reason = entry->finalizer_in_the_way(captured)) {
    ++entry->aborts;
    note(*reason);
    return Result::left;
  }
  if (const auto reason = entry->reducer_in_the_way()) {
    ++entry->aborts;
    note(*reason);
    return Result::left;
  }
  TakenLocks locks;
  if (const auto reason = entry->take_locks(captured, locks)) {
    ++entry->aborts;
    note(*reason);
    return Result::left;
  }
  const double start = now();
  const auto failure = entry->run(std::move(captured), locks, result, committed);
  const double taken = now() - start;
  if (Timeline::is_kept()) [[unlikely]]
    Timeline::add("graph", name_, start / 1e3, (start + taken) / 1e3, failure ? "left" : "");
  durations_.running += taken;
  graph_runs.milliseconds += taken;
  ++graph_runs.count;
  if (!failure) {
    ++entry->hits;
    ++counters_.hits;
    if (entry->hits == 1) account.graph_ran_first();
    save(taken);
    penalty_ = std::max(0, penalty_ - 1);
    pause_ = 0;
    if (first_graph < 0) first_graph = now();
    return Result::ran;
  }
  // The run's check for signals may have set the exception (KeyboardInterrupt).
  if (failure->kind == Failure::Kind::interrupted &&
      (PyErr_Occurred() != nullptr || PyErr_CheckSignals() < 0)) {
    result = {};
    return Result::ran;
  }
  if (failure->kind == Failure::Kind::broken) {
    committed = true;  // in part, so the call can't be repeated
    // A collective has raised what it raises in eager execution.
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_RuntimeError, failure->message.c_str());
    throw python::ErrorSet();
  }
  ++entry->aborts;
  account.spend_on_bailout(taken);
  switch (failure->kind) {
    case Failure::Kind::guard: {
      const auto id = static_cast<size_t>(failure->guard);
      TORCHJANUS_CHECK(id < entry->tests().size(), "dispatch: a guard without a test: ", id);
      const GraphTest& test = entry->tests()[id];
      if (test.is_about_kinds) {
        outgrown_ = entry;
        note({ReasonCode::kind_changed, "", test.span.known() ? test.span : failure->span});
        break;
      }
      wanted = flipped(entry->chosen, with_number(test));
      note({ReasonCode::branch_changed, cat("was always ", test.outcome ? "true" : "false"),
            test.span.known() ? test.span : failure->span});
      break;
    }
    case Failure::Kind::overflow:
      note({ReasonCode::overflow, failure->message, failure->span});
      break;
    default:
      note({ReasonCode::operation_failed, failure->message, failure->span});
      if (entry->hits == 0) penalise(policy::kPenaltyOfUselessGraph, failure->message);
  }
  return Result::left;
}

/// Whether these outcomes have a graph, or never will.
bool Dispatcher::had_its_chance(const Outcomes& wanted) {
  const std::string key = key_of(wanted);
  const auto known = std::ranges::count_if(
      entries_, [&](const auto& entry) { return key_of(entry->chosen) == key; });
  const bool has_numbers =
      std::ranges::any_of(wanted, [](const auto& each) { return each.fact < 0; });
  return wanted.empty() || known >= (has_numbers ? policy::kMostGraphsOfNumberedOutcome : 1) ||
         refusals_of_[key] >= policy::kMostRefusalsOfOutcome;
}

/// Graphs bailed out: make one for the outcomes that occurred, if that may pay. The first graph may
/// have bailed out at a test that others passed, up to a later one.
Dispatcher::Attempt Dispatcher::left(const Call& call, const Environment& environment,
                                     const std::vector<Outcomes>& candidates, bool& committed) {
  ++counters_.aborts;
  if (is_compiling()) return {};  // it may be the graph for such calls
  if (may_generate() && !can_afford_generation()) {
    pause();
    return {};
  }
  penalise(policy::kPenaltyOfAbort, "guards or operators inside the graph");
  if (const auto entry = std::exchange(outgrown_, nullptr))
    return outgrown(call, environment, entry, committed);
  if (is_disabled_ || !may_generate()) return {};
  const auto found =
      std::ranges::find_if(candidates, [&](const Outcomes& each) { return !had_its_chance(each); });
  if (found == candidates.end()) return {};
  const Outcomes& wanted = *found;
  const std::string key = key_of(wanted);
  if (++aborts_of_[key] <= policy::kProfiledAborts) return {false, {}, Otherwise::profile};
  const uint64_t generated = counters_.generated;
  const int refusals = refusals_;
  Attempt attempt = generate_and_run(call, environment, wanted, committed);
  if (counters_.generated == generated) {
    was_left_for_refused_ |= refusals_ > refusals;
    ++refusals_of_[key];
    refusals_ = refusals;  // the refusal does not count for other outcomes
  }
  return attempt;
}

void Dispatcher::pause() {
  pause_ = std::min(2 * pause_ + 1, policy::kLongestPause);
  calls_to_pause_ = pause_;
}

/// A graph met objects of a kind that the profile had not seen. After another profiled run, a graph
/// for more kinds replaces it.
Dispatcher::Attempt Dispatcher::outgrown(const Call& call, const Environment& environment,
                                         const std::shared_ptr<Entry>& entry, bool& committed) {
  if (is_disabled_ || !may_generate() || entry->outgrown >= policy::kMostTimesOutgrown) return {};
  if (++entry->outgrown % 2 == 1) return {false, {}, Otherwise::profile};
  const int times = entry->outgrown, refusals = refusals_;
  const uint64_t generated = counters_.generated;
  Attempt attempt = generate_and_run(call, environment, entry->chosen, committed);
  if (counters_.generated == generated) {
    refusals_ = refusals;  // the old graph still serves the kinds that it knows
    return attempt;
  }
  std::erase(entries_, entry);
  if (is_compiling())
    compiling_->outgrown = times;
  else if (!entries_.empty())
    entries_.front()->outgrown = times;
  return attempt;
}

/// No graph fitted: generalises the facts. The next miss generates a better graph.
Dispatcher::Attempt Dispatcher::missed(const Call& call, const Environment& environment,
                                       const Mismatch& mismatch, bool& committed) {
  ++counters_.misses;
  note(mismatch.reason);
  const Attempt awaiting{.awaits_graph = true};
  if (is_compiling()) {  // the values are observed all the same, for the graph after this one
    if (may_generate() && observe(call)) ++counters_.relaxations;
    return awaiting;
  }
  const bool is_ever_new =
      !mismatch.formula.empty() && graphs_of_[mismatch.formula] >= policy::kMostGraphsOfNumbers;
  const bool may_improve = may_generate() && !is_ever_new;
  if (may_improve) account.miss();
  if (may_improve && !can_afford_generation()) {
    // The value is observed all the same, for the next graph.
    if (!is_disabled_ && observe(call)) ++counters_.relaxations;
    return awaiting;
  }
  penalise(may_improve ? policy::kPenaltyOfMiss : policy::kPenaltyOfLastingMiss,
           mismatch.reason.details);
  if (is_disabled_ || !may_improve) return {};
  // Refusals count by assumption: calls that can't be converted must not use up the attempts of
  // others.
  const std::string& key = mismatch.reason.details;
  if (refusals_of_[key] >= policy::kMostRefusalsOfOutcome) return {};
  const bool relaxed = observe(call);
  if (relaxed) ++counters_.relaxations;
  if (mismatch.dead) pending_ = false;  // the call after this one makes a graph for its objects
  if (pending_ && !relaxed) {
    const uint64_t generated = counters_.generated;
    const int refusals = refusals_;
    Attempt attempt = generate_and_run(call, environment, {}, committed);
    pending_ = counters_.generated == generated;
    was_left_for_refused_ |= refusals_ > refusals;
    if (pending_)
      ++refusals_of_[key];
    else if (!mismatch.formula.empty())
      ++graphs_of_[mismatch.formula];
    return attempt;
  }
  pending_ = true;
  return {false, {}, Otherwise::profile};
}

/// Bookkeeping without tensors is tried too, and nobody wants to know.
void Dispatcher::reach(const char* stage) const {
  if (may_have_work()) tell_stage(stage, name_, file_, line_);
}

/// Joins the entry values of this call to the facts; returns whether a fact became more general.
bool Dispatcher::observe(const Call& call, std::string_view of) {
  bool relaxed = false;
  observations_.begin_call();
  const auto see = [&](const std::string& path, PyObject* object) {
    saw_tensor_ = saw_tensor_ || tensor_access().is_tensor(object);
    if (observations_.see(path, object) && (of.empty() || path == of)) relaxed = true;
  };
  if (roots != nullptr)
    for (const auto& [path, object] : roots(call)) see(path, object);
  visit_values(call, see);
  return relaxed;
}

void Dispatcher::visit_values(const Call& call, const Guards::Visit& visit) const {
  for (const auto& entry : entries_) entry->guards().visit_values(call, visit);
  if (outdated_ != nullptr) outdated_->guards().visit_values(call, visit);
}

/// Whether numbers of a call hardly ever come again: a number had a new value in each call so far,
/// or more values than there should be graphs.
bool Dispatcher::has_ever_new_numbers() const {
  const bool had_graphs = counters_.generated > 0;
  return observations_.most_values() >=
         (had_graphs ? policy::kMostGraphsOfNumbers : policy::kFirstValues);
}

bool Dispatcher::may_generate() const {
  return counters_.generated - paid_off_ < policy::kMostGenerated &&
         refusals_ < policy::kMostRefusals;
}

bool Dispatcher::can_afford_generation() {
  const double most = policy::kFreeGeneration + policy::kShareOfGeneration * (now() - first_met_);
  return (!times_decide || account.spent_on_graphs() <= most) && is_covered();
}

bool Dispatcher::is_covered() {
  // The first graph fits too few calls: without a more general one it was made in vain.
  if (counters_.generated - abandoned_ == 1) return true;
  const bool has_graph = !entries_.empty() || is_compiling();
  if (account.covers_graph(counters_.calls, /*may_wait=*/!has_graph)) return true;
  measurement_.skipped();
  return false;
}

void Dispatcher::save(double milliseconds) {
  account.save(milliseconds, measurement_.gain_of_run(milliseconds));
}

void Dispatcher::profile_finished(double milliseconds) {
  const uint64_t tensors = ProfileRun::tensors_seen() - tensors_before_;
  saw_tensor_ |= tensors != 0;
  has_ever_met_tensors_ |= tensors != 0;
  account.end_profiled_run(tensors);
  durations_.profiling += milliseconds;
  if (Timeline::is_kept()) [[unlikely]] {
    const double end = steady_seconds();
    Timeline::add("profile", name_, end - milliseconds / 1e3, end);
  }
  ++counters_.profiled;
  profiled_ = milliseconds;
  graph_runs_within_ = {graph_runs.milliseconds - graph_runs_before_.milliseconds,
                        graph_runs.count - graph_runs_before_.count};
  if (runs_left_ > 0) --runs_left_;
}

Dispatcher::PythonRun::PythonRun(Dispatcher& dispatcher)
    : dispatcher_(dispatcher), start_(now()), in_graphs_(graph_runs.milliseconds) {}

Dispatcher::PythonRun::~PythonRun() {
  const double in_graphs = graph_runs.milliseconds - in_graphs_;
  ++dispatcher_.in_python_.runs;
  dispatcher_.in_python_.milliseconds += std::max(0.0, now() - start_ - in_graphs);
  if (Timeline::is_kept()) [[unlikely]]
    Timeline::add("python", dispatcher_.name_, start_ / 1e3, steady_seconds());
}

/// Graphs that ran often enough have paid, and others may take their place without end. One whose
/// objects went before its kernels were ready says nothing of the next one, which will find them.
void Dispatcher::drop_retired() {
  constexpr uint64_t kRunsThatPay = policy::kPenaltyOfGoneGraphs;
  constexpr int kMostUnused = 2;
  std::erase_if(entries_, [&](const auto& entry) {
    if (!entry->retired()) return false;
    ++counters_.retired;
    if (entry->hits >= kRunsThatPay) ++paid_off_;
    if (entry->hits == 0 && entry->misses == 0 && unused_ < kMostUnused) {
      ++unused_;
      went_unused_ = true;
    }
    return true;
  });
}

}  // namespace janus::speculate
