#include "bind/region_run.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/options.h"
#include "base/policy.h"
#include "bind/cut_function.h"
#include "bind/frame_variables.h"
#include "python/version.h"
#include "speculate/finalizers.h"
#include "speculate/hooks.h"
#include "speculate/tensor_access.h"
#include "syntax/scope.h"

namespace janus::bind {

using speculate::Call;
using speculate::Dispatcher;

namespace {

/// Counters of new events (profile runs, graphs) in all regions, and of calls that wait for a
/// graph.
uint64_t news = 0, waits = 0;

/// A variable that the statements bind, whose old object has a visible finalizer. A graph sets
/// variables after all its effects, so the finalizer would run too late. Null if there is none.
PyObject* variable_seen_to_end(const RegionState& state, const std::vector<size_t>& variables,
                               PyObject* values) {
  if (state.at_module_level) return nullptr;
  constexpr Py_ssize_t kReferences = 2;  // the variable's, and of the dict that shows it
  for (const size_t number : variables) {
    PyObject* const name = state.assigned[number].get();
    PyObject* const held = PyDict_GetItemWithError(values, name);
    if (speculate::would_run_finalizer(held, kReferences)) return name;
  }
  return nullptr;
}

/// The cut region that this thread is in and that is timed with all its parts, and whether it runs
/// without graphs because of that.
thread_local RegionState* timed = nullptr;
thread_local bool is_without_graphs = false;

/// Tries to run statements of the region as a graph, with the variables of the calling frame.
/// `spent` gets the time of runs that made no graph first. Throws python::ErrorSet.
Dispatcher::Attempt attempt(RegionState& state, Dispatcher& dispatcher, const syntax::Tree& tree,
                            const std::vector<size_t>& variables, StatementResults& given,
                            Spent& spent) {
  std::optional<Stretch> stretch;
  if (dispatcher.is_part) stretch.emplace();
  const uint64_t graphs_before = dispatcher.counters().generated;
  const bool was_disabled = dispatcher.is_disabled(), was_compiling = dispatcher.is_compiling();
  const FrameVariables variables_now;
  Call call;
  call.tree = &tree;
  call.variables = variables_now.get();
  call.globals = PyEval_GetGlobals();
  call.code = variables_now.code();
  call.facts_key = state.module.get();
  if (graphs_before != 0) {  // making a graph checks that itself
    if (PyObject* name = variable_seen_to_end(state, variables, call.variables)) {
      dispatcher.note({speculate::ReasonCode::unknown_callable,
                       cat("the finalizer of ", python::to_string(name)),
                       {}});
      if (stretch) stretch->leave_out();
      return {};
    }
  }
  Dispatcher::Attempt attempt = dispatcher.attempt(call);
  if (attempt.otherwise == Dispatcher::Otherwise::profile || was_compiling ||
      dispatcher.counters().generated != graphs_before || dispatcher.is_disabled() != was_disabled)
    ++news;
  if (attempt.awaits_graph) ++waits;
  if (attempt.ran && attempt.result) {
    given = unpack_results(attempt.result.get(), variables, state.assigned.size());
    if (state.at_module_level) {
      write_globals(given, state.assigned, call.globals);
      given.values.clear();
    }
    if (stretch && dispatcher.counters().generated == graphs_before) stretch->end_as(spent);
  }
  if (stretch) stretch->leave_out();
  if (attempt.ran && !attempt.result) throw python::ErrorSet();
  return attempt;
}

/// Whether the region is a part, at any depth, of the whole.
bool is_part_of(const RegionState& state, const RegionState* whole) {
  return whole != nullptr && std::ranges::any_of(whole->parts, [&](const python::Object& part) {
           const RegionState& each = state_of(part.get());
           return &each == &state || is_part_of(state, &each);
         });
}
bool is_within(const RegionState& state) { return is_part_of(state, timed); }

/// Neither the region nor its parts run as graphs from now on.
void make_plain(RegionState& state, const speculate::Reason& reason) {
  state.is_plain = true;
  state.dispatcher.disable(reason);
  for (const auto& segment : state.cuts->segments()) segment->dispatcher.disable(reason);
  for (const python::Object& part : state.parts) make_plain(state_of(part.get()), reason);
}

/// Whether it is so for the dispatcher of the region, or for one of its parts.
bool any_dispatcher(const RegionState& state, bool (Dispatcher::*is_so)() const) {
  return (state.dispatcher.*is_so)() ||
         std::ranges::any_of(state.cuts->segments(),
                             [&](const auto& segment) { return (segment->dispatcher.*is_so)(); }) ||
         std::ranges::any_of(state.parts, [&](const python::Object& part) {
           return any_dispatcher(state_of(part.get()), is_so);
         });
}

/// Leaves the region to Python until it has run there more often than ever before.
void rest(RegionState& state) {
  state.is_plain = true;
  state.rests_until = 2 * state.dispatcher.counters().passed + state.cut_runs;
}

/// Parts that had no tensor work may have some by now.
void wake(RegionState& state) {
  state.is_plain = false;
  state.rests_until = 0;
  state.measurement.emplace();
  for (const auto& segment : state.cuts->segments()) segment->dispatcher.look_again_if_due();
}

/// Leaves the region to Python if its graphs turned out slower. One that did no tensor work yet, as
/// it fills a buffer before it trains, is measured anew later.
void end_measurement(RegionState& state) {
  const AbTest& test = state.measurement->test();
  if (test.verdict() != AbTest::Verdict::given_up) return;
  if (!any_dispatcher(state, &Dispatcher::has_run_with_tensors)) return rest(state);
  const std::string why = cat("a run of ", state.dispatcher.name(), " takes ", test.with_new(),
                              " ms if it is cut and ", test.with_old(), " ms in Python");
  make_plain(state, {speculate::ReasonCode::limit, why, {}});
}

/// The cut region of which a statement runs in Python that is part of a graph in other runs, so
/// that its bodies need no graphs of their own.
thread_local RegionState* resting_parts = nullptr;

bool has_gradients() {
  return !speculate::has_tensor_access() || speculate::tensor_access().environment().grad_enabled;
}

/// Begins a run of cut statements, unless the region turns out to be better uncut.
Mode begin_activation(RegionState& state) {
  const bool is_timed = !is_within(state);
  const bool is_measured = is_timed && !state.measurement->test().is_over();
  if (is_measured && CoExecution::is_any_undecided()) state.measurement->skipped();
  const bool without_graphs = is_measured && !CoExecution::is_any_undecided() &&
                              state.measurement->begins(state.runs_with_news, has_gradients());
  end_measurement(state);
  if (state.is_plain) return Mode::plain;
  std::vector<Activation>& activations = state.here().activations;
  PyFrameObject* frame = PyEval_GetFrame();
  std::erase_if(activations, [&](const Activation& each) { return each.frame == frame; });
  if (activations.empty() && resting_parts == &state) resting_parts = nullptr;
  Activation& activation = activations.emplace_back();
  activation.frame = frame;
  activation.is_timed = is_timed;
  if (!is_timed) return Mode::cut;
  activation.around = std::exchange(timed, &state);
  activation.around_without_graphs = std::exchange(is_without_graphs, without_graphs);
  activation.news_before = news;
  activation.waits_before = waits;
  return Mode::cut;
}

/// Cuts a function that the statements call, if it was refused there.
void add_callee(RegionState& state, const speculate::Reason& refusal) {
  ++news;
  convert_module_within(refusal, state.dispatcher.account.is_open());
  for (const python::Object& region : cut_callee(refusal)) {
    state_of(region.get()).dispatcher.is_part = true;
    state.parts.push_back(region);
  }
}

/// Milliseconds that converting the region and its parts has cost.
double spent_on(const RegionState& state) {
  double sum = state.dispatcher.account.spent();
  for (const auto& segment : state.cuts->segments()) sum += segment->dispatcher.account.spent();
  for (const python::Object& part : state.parts) sum += spent_on(state_of(part.get()));
  return sum;
}

/// Whether the region runs in the same way for a while: in Python, as it can't be converted or
/// can't be paid for, or cut. News end that.
bool is_settled(const RegionState& state) {
  if (!state.was_entered) return true;
  if (state.is_plain) return state.rests_until == 0;
  if (state.cuts->any())
    return state.measurement->test().is_empty() || state.measurement->test().is_over();
  return state.dispatcher.is_disabled() ||
         (state.dispatcher.counters().generated == 0 && state.dispatcher.account.is_short());
}

void begin_iteration(const RegionState& state) {
  const bool may_count = std::ranges::all_of(
      state.of_iteration, [](const RegionState* each) { return is_settled(*each); });
  if (!state.scope->begin_iteration(may_count, news)) throw python::ErrorSet();
}

/// A profile run of another frame is open only where an interrupt came before its `with`.
void end_profile(RegionState& state) {
  std::vector<OpenProfile>& open = state.here().profiles;
  const auto of_frame = std::ranges::find(open, PyEval_GetFrame(), &OpenProfile::frame);
  if (of_frame == open.end()) return;
  const double start = of_frame->start;
  for (auto each = of_frame; each != open.end(); ++each) speculate::ProfileRun::end();
  open.erase(of_frame, open.end());
  state.dispatcher.profile_finished(speculate::now() - start);
}

/// The calling frame's run of cut statements; null if it has none.
Activation* current_activation(RegionState& state) {
  std::vector<Activation>& activations = state.here().activations;
  PyFrameObject* frame = PyEval_GetFrame();
  while (!activations.empty() && activations.back().frame != frame) activations.pop_back();
  return activations.empty() ? nullptr : &activations.back();
}

void finish_profile(Activation& activation) {
  const std::shared_ptr<Segment> segment = std::move(activation.profiled);
  if (segment == nullptr) return;
  speculate::ProfileRun::end();
  segment->dispatcher.profile_finished(speculate::now() - activation.profile_start);
}

/// A statement that Python ran has ended. Its time counts if no part of it was profiled.
void finish_statement(RegionState& state, Activation& activation) {
  if (activation.in_python && news == activation.news_before_statement)
    activation.statement.end_as(state.cuts->in_python(*activation.in_python));
  if (activation.in_python) resting_parts = activation.around_resting;
  activation.in_python.reset();
}

/// Statement `index` is about to run in Python.
Mode begin_in_python(RegionState& state, size_t index) {
  if (Activation* activation = current_activation(state)) {
    activation->in_python = index;
    activation->around_resting = resting_parts;
    if (index < activation->resting) resting_parts = &state;
    activation->statement = Stretch();
    activation->news_before_statement = news;
  }
  return Mode::plain;
}

/// Statement `index`, where a segment may begin, is about to run.
Mode begin_segment(RegionState& state, size_t index) {
  const std::shared_ptr<Segment> segment = state.cuts->starting_at(index);
  if (is_without_graphs && timed == &state) return Mode::plain;
  if (segment == nullptr || segment->dispatcher.is_disabled()) {
    if (segment != nullptr) segment->dispatcher.count_passed();
    return begin_in_python(state, index);
  }
  if (segment->dispatcher.waits()) return begin_in_python(state, index);
  StatementResults given;
  const auto outcome = attempt(state, segment->dispatcher, *segment->tree, segment->variables,
                               given, segment->as_graph);
  // The program has run meanwhile, so the activations may have moved.
  Activation* activation = current_activation(state);
  if (activation == nullptr) return Mode::plain;
  if (outcome.ran) {
    activation->given = std::move(given);
    activation->done = segment->end;
    return Mode::ran;
  }
  if (outcome.otherwise == Dispatcher::Otherwise::profile) {
    activation->profiled = segment;
    activation->profile_start = speculate::now();
    speculate::ProfileRun::begin();
    return Mode::profile;
  }
  if (segment->dispatcher.counters().generated > 0) activation->resting = segment->end;
  const speculate::Reason* refusal = segment->dispatcher.refusal_to_cut();
  if (refusal != nullptr && state.cuts->starting_at(index) == segment) {
    add_callee(state, *refusal);
    state.cuts->cut(segment, *refusal);
  }
  return begin_in_python(state, index);
}

/// Whether neither the region nor any part of it runs as a graph as things are. A part that was not
/// reached yet counts as one that may.
bool runs_no_graphs(const RegionState& state) {
  if (!state.dispatcher.is_disabled()) return false;
  if (!state.cuts->any()) return true;
  for (const auto& segment : state.cuts->segments())
    if (!segment->dispatcher.is_disabled()) return false;
  return std::all_of(state.parts.begin(), state.parts.end(), [](const python::Object& part) {
    return state_of(part.get()).was_entered && runs_no_graphs(state_of(part.get()));
  });
}

/// Leaves the region to Python if being cut brings nothing. Parts that had no tensor work so far
/// may have some later.
void check_cuts(RegionState& state) {
  if (!runs_no_graphs(state)) return;
  if (any_dispatcher(state, &Dispatcher::will_look_again)) return rest(state);
  state.is_plain = true;
  state.dispatcher.account.give_up(spent_on(state));
}

/// A timed run of the region has ended.
void end_timed(RegionState& state, const Activation& activation) {
  timed = activation.around;
  is_without_graphs = activation.around_without_graphs;
  if (news != activation.news_before) ++state.runs_with_news;
  // The caller may run the gradient of what a function returns, which belongs to the run.
  if (waits != activation.waits_before)
    state.measurement->leave_out();
  else if (state.measurement->awaits_end())
    state.measurement->ended(state.at_module_level);
}

/// Ends a run of the cut statements, if this frame has one.
bool end_activation(RegionState& state) {
  const std::vector<Activation>& activations = state.here().activations;
  if (std::ranges::find(activations, PyEval_GetFrame(), &Activation::frame) == activations.end())
    return false;
  Activation* activation = current_activation(state);
  if (++state.cut_runs % policy::kRunsBetweenCutChecks == 0) check_cuts(state);
  finish_profile(*activation);
  finish_statement(state, *activation);
  const Activation ended = std::move(*activation);
  state.here().activations.pop_back();
  ended.whole.leave_out();
  if (ended.is_timed) end_timed(state, ended);
  return true;
}

}  // namespace

Mode enter(RegionState& state) {
  if (state.scope != nullptr) begin_iteration(state);
  state.was_entered = true;
  if (is_without_graphs && is_within(state)) return Mode::plain;
  if (is_part_of(state, resting_parts)) return Mode::plain;
  if (state.rests_until != 0 && state.dispatcher.counters().passed >= state.rests_until)
    wake(state);
  if (state.is_plain || (state.dispatcher.is_disabled() && !state.cuts->any())) {
    state.dispatcher.count_passed();
    return Mode::plain;
  }
  if (state.cuts->any()) return begin_activation(state);
  if (state.dispatcher.waits()) return Mode::plain;
  StatementResults given;
  const auto outcome =
      attempt(state, state.dispatcher, *state.tree, state.all, given, state.as_graph);
  Place& place = state.here();
  place.given = std::move(given);
  if (outcome.ran) return Mode::ran;
  if (outcome.otherwise == Dispatcher::Otherwise::profile) {
    place.profiles.push_back({PyEval_GetFrame(), speculate::now()});
    speculate::ProfileRun::begin();
    return Mode::profile;
  }
  const speculate::Reason* refusal = state.dispatcher.refusal_to_cut();
  if (refusal == nullptr || !state.cuts->possible()) {
    if (state.dispatcher.is_disabled() && !state.dispatcher.has_looked_again())
      state.dispatcher.account.give_up(spent_on(state));
    return Mode::plain;
  }
  add_callee(state, *refusal);
  state.cuts->cut_whole(state.dispatcher, *refusal);
  state.dispatcher.disable_as_cut();
  return begin_activation(state);
}

Mode ran(RegionState& state, size_t index) {
  Activation* activation = current_activation(state);
  if (activation == nullptr) return Mode::plain;
  if (index < activation->done) return Mode::ran;
  if (activation->profiled != nullptr) {
    if (index < activation->profiled->end) return Mode::profile;
    finish_profile(*activation);
  }
  finish_statement(state, *activation);
  activation->given.clear();
  return begin_segment(state, index);
}

void leave(RegionState& state) {
  if (!end_activation(state)) end_profile(state);
}

StatementResults& current_given(RegionState& state) {
  if (!state.cuts->any()) return state.here().given;
  Activation* activation = current_activation(state);
  return activation == nullptr ? state.here().given : activation->given;
}

const std::vector<size_t>& variables_of(const RegionState& state, int64_t index) {
  return index < 0 ? state.all : state.cuts->bound_by(static_cast<size_t>(index));
}

bool is_last(RegionState& state, int64_t index) {
  if (index < 0) return true;
  const Activation* activation = current_activation(state);
  return activation != nullptr && activation->done == static_cast<size_t>(index) + 1;
}

}  // namespace janus::bind
