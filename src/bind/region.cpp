// How rewritten code uses a Region R of statements S (torchjanus/regions.py):
//
//   match R.enter():
//     case 0: S                           # runs in Python
//     case 1:                             # S ran as a graph
//       if R.gives_all(-1): a, b = R.values(-1)
//       else:                             # one by one
//         if R.gives(0): a = R.value(0)
//         elif R.deletes(0): del a        # where S contains such a `del`
//       if R.broke(-1): break
//       if R.returned(-1): return R.returned_value()
//     case 2:                             # S is profiled
//       with R: <instrumented S>
//     case 3:                             # S is cut
//       with R:
//         match R.ran(0):                 # for each statement
//           case 0: <the first statement>     # with the bodies in it cut in turn
//           case 1: ...                       # it was part of a graph: its variables, as above
//           case 2: <the first statement, instrumented>
//
// `with` leaves a frame that an exception ends at the line that raised it, which `finally` would
// not. At module level enter() and ran() set the globals themselves. Several threads may be between
// these calls at once, and S may recurse. So each thread has its own results, and stacks of the
// open profile runs and of the open runs of cut statements. A KeyboardInterrupt between a call and
// its `with` leaves an element on a stack; runs of cut statements know their frame, so that such an
// element is recognised.
#include "bind/region.h"

#include <structmember.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/options.h"
#include "base/policy.h"
#include "base/printable.h"
#include "bind/co_execution_scope.h"
#include "bind/cut_function.h"
#include "bind/cuts.h"
#include "bind/picture.h"
#include "bind/snapshot.h"
#include "bind/statement_results.h"
#include "python/type_slots.h"
#include "python/version.h"
#include "speculate/describe.h"
#include "speculate/facts.h"
#include "speculate/finalizers.h"
#include "speculate/hooks.h"
#include "speculate/tensor_access.h"
#include "syntax/scope.h"
#include "syntax/source.h"

namespace janus::bind {
namespace {

using python::slot;
using speculate::Call;
using speculate::Dispatcher;

/// The results of enter() and ran().
enum class Mode : long { plain = 0, ran = 1, profile = 2, cut = 3 };

/// Counters of new events (profile runs, graphs) in all regions, and of calls that wait for a
/// graph.
uint64_t news = 0, waits = 0;

struct RegionState;

/// A stretch of time on this thread. It excludes the stretches within it that report their own.
class Stretch {
 public:
  /// Ends the stretch and adds it to `spent`.
  void end_as(Spent& spent) const {
    const double took = speculate::now() - start_;
    ++spent.runs;
    spent.milliseconds += took - (told_elsewhere - before_);
  }
  /// Excludes this stretch from the one around it.
  void leave_out() const { told_elsewhere = before_ + speculate::now() - start_; }

 private:
  inline static thread_local double told_elsewhere = 0;  ///< milliseconds
  double start_ = speculate::now(), before_ = told_elsewhere;
};

/// One run of cut statements.
struct Activation {
  PyFrameObject* frame = nullptr;     ///< compared, never followed
  size_t done = 0;                    ///< statements before this one have run in a graph
  StatementResults given;             ///< of the graph that ran last
  std::shared_ptr<Segment> profiled;  ///< the segment that is profiled
  double profile_start = 0;
  Stretch whole;
  size_t resting = 0;  ///< bodies in statements before this one stay in Python in this run
  RegionState* around_resting = nullptr;  ///< what `resting_parts` was before the statement
  std::optional<size_t> in_python;        ///< the statement that Python is running
  Stretch statement;                      ///< that statement's
  uint64_t news_before_statement = 0;
  /// Whether it is timed: it is not part of a cut region that runs already. Then the other members
  /// say what was timed before it.
  bool is_timed = false, around_without_graphs = false;
  RegionState* around = nullptr;
  uint64_t news_before = 0, waits_before = 0;
};

/// A profile run of the whole, in a frame.
struct OpenProfile {
  PyFrameObject* frame;
  double start;  ///< milliseconds
};

/// The state of one thread.
struct Place {
  StatementResults given;
  std::vector<OpenProfile> profiles;  ///< the open profile runs of the whole
  std::vector<Activation> activations;
};

struct RegionState {
  RegionState(std::string name, std::string file, int line, speculate::DispatchOptions options)
      : dispatcher(std::move(name), std::move(file), line, options) {}
  Dispatcher dispatcher;
  python::Object module;
  std::shared_ptr<const syntax::Tree> tree;
  bool at_module_level = false;
  bool was_entered = false;
  bool is_plain = false;  ///< cut, and nothing in it runs or will run as a graph
  /// Of one that is plain for a time: the run in Python before which it is cut again; 0: for good.
  uint64_t rests_until = 0;
  uint32_t cut_runs = 0;
  /// Measures the graphs of its segments and parts against Python.
  std::optional<speculate::AbMeasurement> measurement{std::in_place};
  uint64_t runs_with_news = 0;
  std::vector<python::Object> assigned;  ///< names of the variables that the statements bind
  std::vector<size_t> all;               ///< their numbers
  Spent as_graph;                        ///< a part's, from entry to exit
  std::unique_ptr<Cuts> cuts;
  std::vector<python::Object> parts;  ///< regions of the bodies of its statements
  std::map<unsigned long, Place> places;
  /// Set if an iteration of the scope, or its only one, begins with these statements.
  std::shared_ptr<CoExecutionScope> scope;
  std::vector<RegionState*> of_iteration;  ///< then: this region, and the others of the iteration

  Place& here() { return places[PyThread_get_thread_ident()]; }
};

struct RegionObject {
  PyObject_HEAD RegionState* state;
  PyObject* weak_references;
};

RegionState& state_of(PyObject* object) { return *reinterpret_cast<RegionObject*>(object)->state; }

/// Runs `body`; C++ exceptions become Python's.
template <class Body>
PyObject* guarded(Body&& body) {
  try {
    return body();
  } catch (const python::ErrorSet&) {
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

PyObject* new_mode(Mode mode) { return PyLong_FromLong(static_cast<long>(mode)); }

// --- running -------------------------------------------------------------------------------------

/// The variables of the calling frame, as a dict. Where the frame keeps the dict, it is emptied
/// afterwards, unless the program holds it too: it would keep objects alive.
class FrameVariables {
 public:
  FrameVariables()
      : dict_(python::Object::steal(python::variables_of_frame())),
        code_(python::Object::steal(
            reinterpret_cast<PyObject*>(PyFrame_GetCode(PyEval_GetFrame())))) {
    if (!dict_) throw python::ErrorSet();
  }
  ~FrameVariables() {
    if (!python::kFrameKeepsVariables) return;
    constexpr Py_ssize_t kFrameAndUs = 2;
    const bool are_fast = (code()->co_flags & CO_OPTIMIZED) != 0;
    if (are_fast && PyDict_CheckExact(dict_.get()) && Py_REFCNT(dict_.get()) == kFrameAndUs)
      PyDict_Clear(dict_.get());
  }
  FrameVariables(const FrameVariables&) = delete;
  FrameVariables& operator=(const FrameVariables&) = delete;
  PyObject* get() const { return dict_.get(); }
  PyCodeObject* code() const { return reinterpret_cast<PyCodeObject*>(code_.get()); }

 private:
  python::Object dict_, code_;
};

Dispatcher::Roots roots_of_call(const Call& call) {
  Dispatcher::Roots roots;
  for (const auto& [name, kind] : call.tree->scope->names) {
    PyObject* value = PyDict_GetItemString(call.variables, name.c_str());
    if (value != nullptr) roots.emplace_back(name, value);
  }
  return roots;
}

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

/// Tries to run statements of the region as a graph, with the variables of the calling frame. If
/// the result is null, an exception is set. `spent` gets the time of runs that made no graph first.
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
    make_part(region.get());
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

/// False with an exception set.
bool begin_iteration(const RegionState& state) {
  const bool may_count = std::ranges::all_of(
      state.of_iteration, [](const RegionState* each) { return is_settled(*each); });
  return state.scope->begin_iteration(may_count, news);
}

PyObject* enter(PyObject* object, PyObject* /*unused*/) {
  return guarded([&]() -> PyObject* {
    RegionState& state = state_of(object);
    if (state.scope != nullptr && !begin_iteration(state)) return nullptr;
    state.was_entered = true;
    if (is_without_graphs && is_within(state)) return new_mode(Mode::plain);
    if (is_part_of(state, resting_parts)) return new_mode(Mode::plain);
    if (state.rests_until != 0 && state.dispatcher.counters().passed >= state.rests_until)
      wake(state);
    if (state.is_plain || (state.dispatcher.is_disabled() && !state.cuts->any())) {
      state.dispatcher.count_passed();
      return new_mode(Mode::plain);
    }
    if (state.cuts->any()) return new_mode(begin_activation(state));
    if (state.dispatcher.waits()) return new_mode(Mode::plain);
    StatementResults given;
    const auto outcome =
        attempt(state, state.dispatcher, *state.tree, state.all, given, state.as_graph);
    Place& place = state.here();
    place.given = std::move(given);
    if (outcome.ran) return outcome.result ? new_mode(Mode::ran) : nullptr;
    if (outcome.otherwise == Dispatcher::Otherwise::profile) {
      place.profiles.push_back({PyEval_GetFrame(), speculate::now()});
      speculate::ProfileRun::begin();
      return new_mode(Mode::profile);
    }
    const speculate::Reason* refusal = state.dispatcher.refusal_to_cut();
    if (refusal == nullptr || !state.cuts->possible()) {
      if (state.dispatcher.is_disabled() && !state.dispatcher.has_looked_again())
        state.dispatcher.account.give_up(spent_on(state));
      return new_mode(Mode::plain);
    }
    add_callee(state, *refusal);
    state.cuts->cut_whole(state.dispatcher, *refusal);
    state.dispatcher.disable_as_cut();
    return new_mode(begin_activation(state));
  });
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

// --- running cut statements ----------------------------------------------------------------------

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
PyObject* begin_in_python(RegionState& state, size_t index) {
  if (Activation* activation = current_activation(state)) {
    activation->in_python = index;
    activation->around_resting = resting_parts;
    if (index < activation->resting) resting_parts = &state;
    activation->statement = Stretch();
    activation->news_before_statement = news;
  }
  return new_mode(Mode::plain);
}

/// Statement `index`, where a segment may begin, is about to run.
PyObject* begin_segment(RegionState& state, size_t index) {
  const std::shared_ptr<Segment> segment = state.cuts->starting_at(index);
  if (is_without_graphs && timed == &state) return new_mode(Mode::plain);
  if (segment == nullptr || segment->dispatcher.is_disabled()) {
    if (segment != nullptr) segment->dispatcher.count_passed();
    return begin_in_python(state, index);
  }
  if (segment->dispatcher.waits()) return begin_in_python(state, index);
  StatementResults given;
  const auto outcome = attempt(state, segment->dispatcher, *segment->tree, segment->variables,
                               given, segment->as_graph);
  if (outcome.ran && !outcome.result) return nullptr;
  // The program has run meanwhile, so the activations may have moved.
  Activation* activation = current_activation(state);
  if (activation == nullptr) return new_mode(Mode::plain);
  if (outcome.ran) {
    activation->given = std::move(given);
    activation->done = segment->end;
    return new_mode(Mode::ran);
  }
  if (outcome.otherwise == Dispatcher::Otherwise::profile) {
    activation->profiled = segment;
    activation->profile_start = speculate::now();
    speculate::ProfileRun::begin();
    return new_mode(Mode::profile);
  }
  if (segment->dispatcher.counters().generated > 0) activation->resting = segment->end;
  const speculate::Reason* refusal = segment->dispatcher.refusal_to_cut();
  if (refusal != nullptr && state.cuts->starting_at(index) == segment) {
    add_callee(state, *refusal);
    state.cuts->cut(segment, *refusal);
  }
  return begin_in_python(state, index);
}

PyObject* ran(PyObject* object, PyObject* argument) {
  return guarded([&]() -> PyObject* {
    RegionState& state = state_of(object);
    const auto index = static_cast<size_t>(python::to_integer(argument));
    Activation* activation = current_activation(state);
    if (activation == nullptr) return new_mode(Mode::plain);
    if (index < activation->done) return new_mode(Mode::ran);
    if (activation->profiled != nullptr) {
      if (index < activation->profiled->end) return new_mode(Mode::profile);
      finish_profile(*activation);
    }
    finish_statement(state, *activation);
    activation->given.clear();
    return begin_segment(state, index);
  });
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

PyObject* begin_with(PyObject* /*object*/, PyObject* /*unused*/) { Py_RETURN_NONE; }

/// Ends what enter() has begun in this frame: a run of the cut statements, or a profile run.
PyObject* end_with(PyObject* object, PyObject* const* /*error*/, Py_ssize_t /*count*/) {
  return guarded([&]() -> PyObject* {
    RegionState& state = state_of(object);
    if (!end_activation(state)) end_profile(state);
    Py_RETURN_NONE;
  });
}

// --- the results of a graph ---------------------------------------------------------------------

/// The results of the graph that ran last in the calling frame: the whole's, or a segment's.
StatementResults& current_given(RegionState& state) {
  if (!state.cuts->any()) return state.here().given;
  Activation* activation = current_activation(state);
  return activation == nullptr ? state.here().given : activation->given;
}

/// The variables to set after statement `index`; -1: after all.
const std::vector<size_t>& variables_of(const RegionState& state, int64_t index) {
  return index < 0 ? state.all : state.cuts->bound_by(static_cast<size_t>(index));
}

/// Whether statement `index` was the last one of the graph; -1 stands for the whole.
bool is_last(RegionState& state, int64_t index) {
  if (index < 0) return true;
  const Activation* activation = current_activation(state);
  return activation != nullptr && activation->done == static_cast<size_t>(index) + 1;
}

PyObject* gives_all(PyObject* object, PyObject* index) {
  return guarded([&] {
    RegionState& state = state_of(object);
    const StatementResults& given = current_given(state);
    bool all = true;
    for (const size_t number : variables_of(state, python::to_integer(index)))
      all &= number < given.values.size() && bool(given.values[number]);
    return PyBool_FromLong(all ? 1 : 0);
  });
}

PyObject* values(PyObject* object, PyObject* index) {
  return guarded([&] {
    RegionState& state = state_of(object);
    StatementResults& given = current_given(state);
    const int64_t statement = python::to_integer(index);
    std::vector<python::Object> taken;
    for (const size_t number : variables_of(state, statement))
      taken.push_back(given.values.at(number));
    if (statement < 0) given.values.clear();  // keep no object alive
    return python::tuple(taken).release();
  });
}

PyObject* gives(PyObject* object, PyObject* number) {
  return guarded([&] {
    const StatementResults& given = current_given(state_of(object));
    const auto wanted = static_cast<size_t>(python::to_integer(number));
    return PyBool_FromLong(wanted < given.values.size() && given.values[wanted] ? 1 : 0);
  });
}

PyObject* value(PyObject* object, PyObject* number) {
  return guarded([&] {
    RegionState& state = state_of(object);
    python::Object& value =
        current_given(state).values.at(static_cast<size_t>(python::to_integer(number)));
    python::Object taken = value;
    if (!state.cuts->any()) value = {};  // keep no object alive
    return taken.release();
  });
}

PyObject* deletes(PyObject* object, PyObject* number) {
  return guarded([&]() -> PyObject* {
    RegionState& state = state_of(object);
    const StatementResults& given = current_given(state);
    const auto wanted = static_cast<size_t>(python::to_integer(number));
    if (wanted >= given.deleted.size() || !given.deleted[wanted]) Py_RETURN_FALSE;
    const FrameVariables variables;
    return PyBool_FromLong(PyMapping_HasKey(variables.get(), state.assigned[wanted].get()));
  });
}

PyObject* broke(PyObject* object, PyObject* index) {
  return guarded([&] {
    RegionState& state = state_of(object);
    return PyBool_FromLong(current_given(state).end == End::break_ &&
                           is_last(state, python::to_integer(index)));
  });
}
PyObject* continued(PyObject* object, PyObject* index) {
  return guarded([&] {
    RegionState& state = state_of(object);
    return PyBool_FromLong(current_given(state).end == End::continue_ &&
                           is_last(state, python::to_integer(index)));
  });
}
PyObject* returned(PyObject* object, PyObject* index) {
  return guarded([&] {
    RegionState& state = state_of(object);
    return PyBool_FromLong(current_given(state).end == End::return_ &&
                           is_last(state, python::to_integer(index)));
  });
}
PyObject* returned_value(PyObject* object, PyObject* /*unused*/) {
  return guarded([&] {
    python::Object value = std::move(current_given(state_of(object)).returned);
    return value ? value.release() : Py_NewRef(Py_None);
  });
}

// --- making and reporting ------------------------------------------------------------------------

int first_line(const syntax::Tree& tree) {
  return tree.body.empty() ? 0 : tree.body.front()->span.line;
}

/// The names that statement `index` binds, as numbers in `assigned` (all, in order).
std::vector<size_t> bound_by(PyObject* module, Py_ssize_t index, const syntax::Tree& whole) {
  const python::Object statements = python::attribute(module, "body");
  const python::Object make = python::import_attribute("ast", "Module");
  const python::Object body =
      python::list({python::Object::borrow(PyList_GetItem(statements.get(), index))});
  const python::Object part = python::call(make.get(), {body.get(), python::list({}).get()});
  const auto tree =
      syntax::tree_of_statements(part.get(), *whole.file, whole.name, false, {}, whole.class_name);
  const std::vector<std::string>& assigned = whole.scope->assigned;
  std::vector<size_t> numbers;
  for (const std::string& name : tree->scope->assigned) {
    const auto place = std::lower_bound(assigned.begin(), assigned.end(), name);
    if (place != assigned.end() && *place == name)
      numbers.push_back(static_cast<size_t>(place - assigned.begin()));
  }
  return numbers;
}

void add_last_line(const python::Object& dict, const syntax::Tree& tree) {
  const python::Object line = python::integer(tree.body.back()->span.end_line);
  python::check_status(PyDict_SetItemString(dict.get(), "end_line", line.get()));
}

/// stats_of() or snapshot_of() of the region, with those of its parts if it is cut.
python::Object told(const RegionState& state, Dispatcher::Describe describe) {
  python::Object dict = python::check(describe(state.dispatcher));
  add_last_line(dict, *state.tree);
  if (state.scope != nullptr) add_co_execution(dict.get(), state.scope->co_execution());
  if (state.dispatcher.is_part) add_spent(dict.get(), "as_graph", state.as_graph);
  if (!state.cuts->any()) return dict;
  std::vector<python::Object> parts;
  for (const auto& segment : state.cuts->segments()) {
    parts.push_back(python::check(describe(segment->dispatcher)));
    add_last_line(parts.back(), *segment->tree);
    add_spent(parts.back().get(), "as_graph", segment->as_graph);
    add_spent(parts.back().get(), "in_python", state.cuts->in_python(*segment));
  }
  for (const python::Object& part : state.parts)
    if (state_of(part.get()).was_entered) parts.push_back(told(state_of(part.get()), describe));
  add_cuts(dict.get(), *state.cuts);
  if (!state.dispatcher.is_part) add_speed(dict.get(), *state.measurement);
  add_parts(dict.get(), parts);
  return dict;
}

std::unique_ptr<RegionState> make_state(PyObject* module,
                                        const std::shared_ptr<const syntax::Tree>& tree,
                                        bool at_module_level, bool is_part) {
  constexpr speculate::DispatchOptions kPart = {.least_work = policy::kLeastWorkOfPart};
  auto state = std::make_unique<RegionState>(tree->name, printable(*tree->file), first_line(*tree),
                                             is_part ? kPart : speculate::DispatchOptions());
  state->module = python::Object::borrow(module);
  state->tree = tree;
  state->at_module_level = at_module_level;
  for (const std::string& name : tree->scope->assigned) {
    state->all.push_back(state->assigned.size());
    state->assigned.push_back(python::string(name));
  }
  std::vector<std::vector<size_t>> bound;
  for (size_t i = 0; i < tree->body.size(); ++i)
    bound.push_back(bound_by(module, static_cast<Py_ssize_t>(i), *tree));
  state->cuts = std::make_unique<Cuts>(tree, tree->scope->assigned, std::move(bound));
  state->dispatcher.roots = roots_of_call;
  state->dispatcher.is_part = is_part;
  state->dispatcher.open_account();
  state->dispatcher.tell = [owner = state.get()](Dispatcher::Describe describe) {
    return guarded([&] { return told(*owner, describe).release(); });
  };
  return state;
}

PyObject* create(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"module",     "file",  "name",          "at_module_level",
                                "class_name", "whole", "ends_function", nullptr};
  PyObject* module = nullptr;
  PyObject* file = nullptr;  // its bytes may be no UTF-8
  const char *name = nullptr, *class_name = nullptr;
  PyObject* whole = nullptr;  // the region whose statements contain this one
  int at_module_level = 0, ends_function = 0;
  if (PyArg_ParseTupleAndKeywords(arguments, keywords, "OUsp|zOp:Region", const_cast<char**>(names),
                                  &module, &file, &name, &at_module_level, &class_name, &whole,
                                  &ends_function) == 0)
    return nullptr;
  if (whole == Py_None) whole = nullptr;
  if (whole != nullptr && Py_TYPE(whole) != type) {
    PyErr_SetString(PyExc_TypeError, "Region: whole must be a Region");
    return nullptr;
  }
  return guarded([&]() -> PyObject* {
    const auto tree =
        syntax::tree_of_statements(module, python::to_string(file), name, at_module_level != 0, {},
                                   class_name == nullptr ? "" : class_name);
    if (tree == nullptr) {
      PyErr_SetString(PyExc_ValueError, "Region: the statements have no tree");
      return nullptr;
    }
    tree->ends_function = ends_function != 0;
    auto state = make_state(module, tree, at_module_level != 0, whole != nullptr);
    auto* made = reinterpret_cast<RegionObject*>(type->tp_alloc(type, 0));
    if (made == nullptr) return nullptr;
    made->state = state.release();
    auto* region = reinterpret_cast<PyObject*>(made);
    if (whole != nullptr) state_of(whole).parts.push_back(python::Object::borrow(region));
    return region;
  });
}

/// Keeps the counters of a region. A script's regions die with its code, before the final report is
/// written.
void bury(std::unique_ptr<RegionState> state) {
  static auto* buried = new std::vector<std::unique_ptr<RegionState>>();
  state->places.clear();
  buried->push_back(std::move(state));
}

void deallocate(PyObject* object) {
  auto* region = reinterpret_cast<RegionObject*>(object);
  if (region->weak_references != nullptr) PyObject_ClearWeakRefs(object);
  bury(std::unique_ptr<RegionState>(region->state));
  PyTypeObject* type = Py_TYPE(object);
  type->tp_free(object);
  Py_DECREF(type);
}

PyObject* represent(PyObject* object) {
  const Dispatcher& dispatcher = state_of(object).dispatcher;
  return PyUnicode_FromFormat("<torchjanus.Region %s at %s:%d>", dispatcher.name().c_str(),
                              dispatcher.file().c_str(), dispatcher.line());
}

PyObject* get_assigned(PyObject* object, void* /*unused*/) {
  return guarded([&] { return python::tuple(state_of(object).assigned).release(); });
}

PyObject* bound_by_statement(PyObject* object, PyObject* index) {
  return guarded([&] {
    std::vector<python::Object> numbers;
    for (const size_t number : variables_of(state_of(object), python::to_integer(index)))
      numbers.push_back(python::integer(static_cast<int64_t>(number)));
    return python::tuple(numbers).release();
  });
}

PyObject* can_be_cut(PyObject* object, PyObject* /*unused*/) {
  return PyBool_FromLong(state_of(object).cuts->possible() ? 1 : 0);
}

PyObject* expect_to_vary(PyObject* object, PyObject* variable) {
  const char* name = PyUnicode_AsUTF8(variable);
  if (name == nullptr) return nullptr;
  state_of(object).dispatcher.expect_to_vary(name);
  Py_RETURN_NONE;
}

PyObject* stats(PyObject* object, PyObject* /*unused*/) {
  return guarded([&] { return told(state_of(object), stats_of).release(); });
}
PyObject* details(PyObject* object, PyObject* /*unused*/) {
  return guarded([&] { return told(state_of(object), details_of).release(); });
}
PyObject* snapshot(PyObject* object, PyObject* /*unused*/) {
  return guarded([&] { return told(state_of(object), snapshot_of).release(); });
}
PyObject* explain(PyObject* object, PyObject* /*unused*/) { return render("explain", object); }
PyObject* graph_text(PyObject* object, PyObject* /*unused*/) { return render("graph", object); }
PyObject* as_html(PyObject* object, PyObject* /*unused*/) { return render("as_html", object); }

/// Code that is pickled by value arrives without its regions, which know objects of this process.
PyObject* reduce(PyObject* /*object*/, PyObject* /*protocol*/) {
  return guarded([] {
    const python::Object made = python::import_attribute("torchjanus.regions", "Unconverted");
    return python::tuple({made, python::tuple({})}).release();
  });
}

PyMethodDef methods[] = {
    {"enter", enter, METH_NOARGS, "Runs the statements as a graph if it can; what is to be done."},
    {"__enter__", begin_with, METH_NOARGS, nullptr},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(end_with)),
     METH_FASTCALL, "Ends a profile run or a run of the cut statements."},
    {"ran", ran, METH_O, "Cut: whether statement i has run in a graph, or what is to be done."},
    {"gives_all", gives_all, METH_O, "Whether a graph set all that statement i (-1: any) binds."},
    {"values", values, METH_O, "The values of what statement i (-1: any) binds."},
    {"gives", gives, METH_O, "Whether a graph set variable k."},
    {"value", value, METH_O, "What it set variable k to."},
    {"deletes", deletes, METH_O, "Whether it deleted variable k, which has a value still."},
    {"broke", broke, METH_O, "Whether the graph, which ran up to statement i, ended with break."},
    {"continued", continued, METH_O, "The same for continue."},
    {"returned", returned, METH_O, "The same for return."},
    {"returned_value", returned_value, METH_NOARGS, "What it returned, once."},
    {"bound_by", bound_by_statement, METH_O, "Numbers of the variables statement i binds."},
    {"can_be_cut", can_be_cut, METH_NOARGS, "Whether cutting may leave something for graphs."},
    {"expect_to_vary", expect_to_vary, METH_O, "Numbers of this variable will vary."},
    {"explain", explain, METH_NOARGS, "What was converted and what was not, as text."},
    {"graph", graph_text, METH_NOARGS, "The graphs in the cache in their textual form."},
    {"stats", stats, METH_NOARGS, "Counters, durations in milliseconds, and reasons, as a dict."},
    {"snapshot", snapshot, METH_NOARGS, "Everything that explain() renders, as a dict."},
    {"_repr_html_", as_html, METH_NOARGS, "What notebooks show of it."},
    {"_details", details, METH_NOARGS, "The same with what reports in HTML show."},
    {"__reduce_ex__", reduce, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef properties[] = {
    {"assigned", get_assigned, nullptr, "Names of the variables the statements may set.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(RegionObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

constexpr const char* kDoc = R"(A run of statements of a script that may run as a graph.

`torchjanus run` makes them of loop bodies and functions. What they have beside explain, graph, stats
and snapshot is called by the rewritten code (torchjanus/regions.py).
)";

PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>(kDoc)},
                       {Py_tp_new, slot(create)},
                       {Py_tp_dealloc, slot(deallocate)},
                       {Py_tp_repr, slot(represent)},
                       {Py_tp_methods, methods},
                       {Py_tp_getset, properties},
                       {Py_tp_members, members},
                       {0, nullptr}};

PyType_Spec spec = {"torchjanus.Region", sizeof(RegionObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

PyObject* region_type() {
  static PyObject* type = python::check(PyType_FromSpec(&spec)).release();
  return type;
}

speculate::Dispatcher* dispatcher_of_region(PyObject* object) {
  if (Py_TYPE(object) != reinterpret_cast<PyTypeObject*>(region_type())) return nullptr;
  return &state_of(object).dispatcher;
}

bool may_run_as_graph_at(PyObject* object, int line) {
  const RegionState& state = state_of(object);
  const auto holds = [line](const syntax::Tree& tree) {
    return line >= first_line(tree) && line <= tree.body.back()->span.end_line;
  };
  const auto is_open = [](const Dispatcher& dispatcher) {
    return !dispatcher.is_disabled() && dispatcher.counters().calls > 1;
  };
  if (!holds(*state.tree)) return false;
  if (!state.cuts->any()) return is_open(state.dispatcher);
  const auto segments = state.cuts->segments();
  return std::ranges::any_of(segments, [&](const std::shared_ptr<Segment>& segment) {
    return holds(*segment->tree) && is_open(segment->dispatcher);
  });
}

python::Object region_told(PyObject* region, Dispatcher::Describe describe) {
  return told(state_of(region), describe);
}

bool put_into_scope(const std::vector<PyObject*>& regions,
                    const std::shared_ptr<CoExecutionScope>& scope) {
  const auto is_region = [](PyObject* each) { return dispatcher_of_region(each) != nullptr; };
  if (regions.empty() || !std::ranges::all_of(regions, is_region)) return false;
  RegionState& first = state_of(regions.front());
  first.scope = scope;
  for (PyObject* const each : regions) first.of_iteration.push_back(&state_of(each));
  return true;
}

void make_part(PyObject* region) { state_of(region).dispatcher.is_part = true; }

void ask_for(PyObject* region) {
  state_of(region).dispatcher.account.close();
  for (const python::Object& part : state_of(region).parts) ask_for(part.get());
}

RegionParts parts_of_region(PyObject* object) {
  return {state_of(object).module.get(), state_of(object).tree.get()};
}

}  // namespace janus::bind
