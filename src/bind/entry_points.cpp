#include "bind/entry_points.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/call_tree.h"
#include "base/conversion_account.h"
#include "base/policy.h"
#include "base/steady_time.h"
#include "base/thread_time.h"
#include "bind/cut_function.h"
#include "bind/region.h"
#include "python/gc_pause.h"
#include "python/object.h"
#include "speculate/describe.h"
#include "speculate/dispatch.h"
#include "speculate/tensor_access.h"

namespace janus::bind {
namespace {

using python::Object;

double now() { return 1e3 * steady_seconds(); }

Object code_of(PyFrameObject* frame) {
  return Object::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
}

std::string file_of(PyObject* code) {
  return speculate::text_of(reinterpret_cast<PyCodeObject*>(code)->co_filename);
}

/// Whether the C function works with tensors: a method of one, or a function of torch's.
bool is_of_torch(PyObject* function) {
  if (!PyCFunction_Check(function)) return false;
  PyObject* self = PyCFunction_GET_SELF(function);
  if (self == nullptr) return false;
  if (PyModule_Check(self)) {
    const char* name = PyModule_GetName(self);
    if (name == nullptr) PyErr_Clear();
    return name != nullptr && std::string_view(name).starts_with("torch.");
  }
  if (PyType_Check(self))
    return std::string_view(reinterpret_cast<PyTypeObject*>(self)->tp_name).starts_with("torch.");
  return speculate::tensor_access().is_tensor(self);
}

PyFrameObject* raw(const Object& frame) { return reinterpret_cast<PyFrameObject*>(frame.get()); }

Object caller_of(PyFrameObject* frame) {
  return Object::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(frame)));
}

/// The active calls of this thread, outermost first.
std::vector<Object> active_frames() {
  std::vector<Object> frames;
  Object frame = Object::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  for (; frame; frame = caller_of(raw(frame))) frames.push_back(frame);
  std::ranges::reverse(frames);
  return frames;
}

bool is_of_importlib(PyFrameObject* frame) {
  return file_of(code_of(frame).get()).starts_with("<frozen importlib");
}

bool is_importing(const std::vector<Object>& frames) {
  return std::ranges::any_of(frames,
                             [](const Object& frame) { return is_of_importlib(raw(frame)); });
}

std::string name_of(PyObject* code) {
  return speculate::text_of(reinterpret_cast<PyCodeObject*>(code)->co_name);
}

/// The regions that were put into this code.
std::vector<PyObject*> regions_in(PyObject* code) {
  PyObject* constants = reinterpret_cast<PyCodeObject*>(code)->co_consts;
  std::vector<PyObject*> found;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); ++i) {
    PyObject* each = PyTuple_GET_ITEM(constants, i);
    if (dispatcher_of_region(each) != nullptr) found.push_back(each);
  }
  return found;
}

/// Milliseconds spent on functions of which no graph has run.
double spent_in_vain() {
  double sum = 0;
  for (const speculate::Dispatcher* each : speculate::Dispatcher::all()) {
    const speculate::Durations& spent = each->durations();
    if (each->counters().hits == 0)
      sum += policy::kShareOfHooks * spent.profiling + spent.generating + spent.optimising +
             spent.compiling;
  }
  return sum;
}

/// All plain functions with this code.
std::vector<Object> functions_with(PyObject* code) {
  const Object referrers = python::import_attribute("gc", "get_referrers");
  std::vector<Object> found = python::elements(python::call(referrers.get(), {code}).get());
  std::erase_if(found, [&](const Object& each) {
    return !PyFunction_Check(each.get()) || PyFunction_GET_CODE(each.get()) != code;
  });
  return found;
}

class Watch {
 public:
  /// Opens or closes a window if that is due. On the main thread, between two instructions.
  void look();
  void on_event(PyFrameObject* frame, int event, PyObject* argument);
  void expect(std::vector<ExpectedEntryPoint> expected) { expected_ = std::move(expected); }
  void fail(const std::string& error) { seen_.error = error; }
  bool has_failed() const { return !seen_.error.empty(); }
  /// What is open is closed and forgotten. The time until `resume` does not count.
  void pause();
  void resume();
  WatchReport told() const;

 private:
  void describe(PyObject* code, const std::string& why_not, const std::string& module = {});
  bool has_new_modules();
  void convert_expected();
  bool is_due();
  void open(const std::vector<Object>& active);
  void enter(PyFrameObject* frame);
  void remember(PyFrameObject* frame, const Object& code);
  static bool is_module(PyFrameObject* frame, const Object& code);
  void note_callers_of_module(PyFrameObject* frame);
  bool is_covered(PyFrameObject* caller) const;
  void close();
  void convert_repeated();
  CallTree::Choice choose(PyObject* code);
  void convert(PyObject* code);
  void convert_function(PyObject* function);

  CallTree tree_;
  /// A key of the tree.
  struct Seen {
    Object code;                     ///< kept alive
    std::vector<PyObject*> regions;  ///< its constants
  };
  std::unordered_map<const void*, Seen> codes_;
  /// The regions of an entry point; none where the function can't be one.
  struct Known {
    Object code;  ///< kept alive, as it is the key
    std::vector<Object> regions;
  };
  std::unordered_map<const void*, Known> known_;
  /// Functions that run whole programs or cells of notebooks.
  std::unordered_map<const void*, Object> run_modules_;
  WatchReport seen_;
  std::vector<ExpectedEntryPoint> expected_;  ///< those that are not defined yet
  Py_ssize_t modules_ = 0;                    ///< loaded when these were looked for last
  int looks_left_ = 0;                        ///< for what those modules still define

  double start_ = now();  ///< later by the time of pauses
  std::optional<double> paused_;
  double spent_ = 0;      ///< estimated cost of all windows, in milliseconds
  double last_ = start_;  ///< end of the last window
  double in_graphs_ = 0;  ///< milliseconds, at that time
  int in_vain_ = 0;       ///< windows since the last entry point was found
  bool is_open_ = false;
  bool has_news_ = false;  ///< a window has ended, and nobody has looked yet
  double opened_ = 0;
  int64_t events_left_ = 0, events_ = 0;
};

/// Never destroyed: the process may end in a window.
Watch* watch = nullptr;

int profile(PyObject* /*unused*/, PyFrameObject* frame, int event, PyObject* argument) {
  watch->on_event(frame, event, argument);
  return 0;
}

/// The share of a program's time that entry points may take, before one is known.
constexpr double kShareInEntryPoints = 0.25;  // chosen, not measured

/// Whether a graph of what may be found could be paid.
bool can_be_paid() {
  const ConversionAccount* const account = conversion_account();
  if (account == nullptr) return true;
  if (speculate::RegionAccount::is_any_waiting())
    return false;  // a region of the script comes first
  const double used = processor_milliseconds();
  return account->covers(account->estimate(std::nullopt), used, kShareInEntryPoints * used);
}

bool Watch::is_due() {
  const double time = now();
  if (is_open_ || time - start_ < policy::kBeforeWatching) return false;
  const int rarity = in_vain_ / policy::kWindowsInVain;
  const double share = policy::kShareOfWatching / static_cast<double>(1 << std::min(rarity, 6));
  const double affordable = share * (time - start_) - spent_;
  if (affordable < policy::kLeastWindow || !can_be_paid()) return false;
  // A debugger, a profiler or coverage has the place, or the program runs as graphs already.
  const PyThreadState* thread = PyThreadState_Get();
  if (thread->c_profilefunc != nullptr || thread->c_tracefunc != nullptr) {
    ++seen_.blocked;
    return false;
  }
  const double in_graphs = speculate::Dispatcher::milliseconds_in_graphs();
  const bool runs_as_graphs = in_graphs - in_graphs_ > policy::kMostShareInGraphs * (time - last_);
  if (runs_as_graphs) {
    last_ = time;
    in_graphs_ = in_graphs;
    return false;
  }
  events_left_ = std::min(policy::kMostWatchedEvents,
                          static_cast<int64_t>(affordable / policy::kCostOfWatchedEvent));
  return true;
}

void Watch::look() {
  if (is_open_ && now() - opened_ > policy::kLongestWindow) close();
  if (has_news_) convert_repeated();
  if (!expected_.empty() && has_new_modules()) convert_expected();
  if (!is_due()) return;
  const std::vector<Object> active = active_frames();
  if (!active.empty() && !is_importing(active)) open(active);
}

void Watch::open(const std::vector<Object>& active) {
  std::vector<CallTree::Active> calls;
  for (size_t i = 0; i < active.size(); ++i) {
    const Object code = code_of(raw(active[i]));
    remember(raw(active[i]), code);
    calls.push_back({code.get(), i > 0 && is_covered(raw(active[i - 1]))});
  }
  opened_ = now();
  events_ = 0;
  ++seen_.windows;
  is_open_ = true;
  tree_.begin_window(calls, opened_);
  PyEval_SetProfile(profile, nullptr);
}

void Watch::on_event(PyFrameObject* frame, int event, PyObject* argument) {
  if (event == PyTrace_CALL) {
    enter(frame);
  } else if (event == PyTrace_RETURN) {
    tree_.leave(now());
  } else if (event == PyTrace_C_CALL && is_of_torch(argument)) {
    tree_.mark();
    ++seen_.tensor_calls;
  }
  ++seen_.events;
  if (++events_ >= events_left_) close();
}

void Watch::enter(PyFrameObject* frame) {
  const Object code = code_of(frame);
  remember(frame, code);
  // The caller's frame is only made where it is needed.
  const auto caller = codes_.find(tree_.innermost());
  const bool may_be = caller != codes_.end() && !caller->second.regions.empty();
  tree_.enter(code.get(), now(), may_be && is_covered(raw(caller_of(frame))));
}

void Watch::remember(PyFrameObject* frame, const Object& code) {
  if (codes_.contains(code.get())) return;
  codes_[code.get()] = {code, regions_in(code.get())};
  if (is_module(frame, code)) note_callers_of_module(frame);
}

/// Whether the frame runs a file or a cell: `eval` and `exec` of a text within a function do not.
bool Watch::is_module(PyFrameObject* frame, const Object& code) {
  if (name_of(code.get()) != "<module>") return false;
  const Object globals = Object::steal(PyFrame_GetGlobals(frame));
  const Object locals = Object::steal(PyFrame_GetLocals(frame));
  if (!locals || !locals.is(globals.get())) {
    PyErr_Clear();
    return false;
  }
  PyObject* name = PyDict_GetItemString(globals.get(), "__name__");
  return PyDict_GetItemString(globals.get(), "__file__") != nullptr ||
         (name != nullptr && PyUnicode_Check(name) != 0 &&
          PyUnicode_CompareWithASCIIString(name, "__main__") == 0);
}

/// What calls `exec` with the code of a module runs a program: it is no step of one. An import
/// within a step runs a module, too.
void Watch::note_callers_of_module(PyFrameObject* frame) {
  for (Object caller = caller_of(frame); caller && !is_of_importlib(raw(caller));
       caller = caller_of(raw(caller))) {
    const Object code = code_of(raw(caller));
    run_modules_.emplace(code.get(), code);
  }
}

/// Whether what the caller calls now may be part of a graph, by a region around that call.
bool Watch::is_covered(PyFrameObject* caller) const {
  if (caller == nullptr) return false;
  const auto seen = codes_.find(code_of(caller).get());
  if (seen == codes_.end() || seen->second.regions.empty()) return false;
  const int line = PyFrame_GetLineNumber(caller);
  return std::ranges::any_of(
      seen->second.regions, [line](PyObject* region) { return may_run_as_graph_at(region, line); });
}

/// The place may have become somebody else's meanwhile: sys.setprofile in the window.
void Watch::close() {
  if (PyThreadState_Get()->c_profilefunc == profile) PyEval_SetProfile(nullptr, nullptr);
  is_open_ = false;
  last_ = now();
  in_graphs_ = speculate::Dispatcher::milliseconds_in_graphs();
  tree_.end_window(last_);
  const double cost = policy::kCostOfWatchedEvent * static_cast<double>(events_);
  spent_ += cost;
  spend_on_conversion(cost);
  has_news_ = true;
}

void Watch::pause() {
  if (is_open_ && PyThreadState_Get()->c_profilefunc == profile) close();
  paused_ = now();
  if (is_open_) return;  // a window of another thread ends with its last event
  has_news_ = false;
  tree_.clear();
  codes_.clear();
}

void Watch::resume() {
  if (!paused_) return;
  start_ += now() - *std::exchange(paused_, std::nullopt);
  last_ = now();
  in_graphs_ = speculate::Dispatcher::milliseconds_in_graphs();
}

/// Not in the window's last event, where the interpreter is in the middle of a call.
void Watch::convert_repeated() {
  has_news_ = false;
  ++in_vain_;
  if (spent_in_vain() > policy::kFreeFinding + policy::kShareOfFinding * (last_ - start_)) {
    ++seen_.over_budget;
    return;
  }
  const auto found =
      tree_.repeated({.calls = policy::kCallsOfEntryPoint,
                      .share = policy::kShareOfEntryPoint,
                      .within = policy::kCallsWithinEnded},
                     [&](CallTree::Key key) { return choose(codes_.at(key).code.get()); });
  if (found.empty()) return;
  const double start = thread_seconds();
  for (const CallTree::Key key : found) convert(codes_.at(key).code.get());
  spend_on_conversion(1e3 * (thread_seconds() - start));
  in_vain_ = 0;
  tree_.clear();
  codes_.clear();
}

CallTree::Choice Watch::choose(PyObject* code) {
  using Choice = CallTree::Choice;
  if (const auto known = known_.find(code); known != known_.end()) {
    const bool is_open = std::ranges::any_of(known->second.regions, [](const Object& region) {
      return !dispatcher_of_region(region.get())->is_disabled();
    });
    return is_open ? Choice::skip : Choice::below;
  }
  if (run_modules_.contains(code)) return Choice::below;
  const std::string name = name_of(code);
  if (name == "__init__") return Choice::skip;  // the program is still being set up
  if (name.starts_with('<')) return Choice::below;
  const std::string file = file_of(code);
  const Object may_be = python::import_attribute("torchjanus.regions", "may_be_entry_point");
  if (python::call(may_be.get(), {python::string(file).get()}).is(Py_True)) {
    if (!makes_generator(code)) return Choice::take;
    describe(code, "it is a generator or coroutine");
  } else if (file.starts_with('<') && !file.starts_with("<frozen ")) {
    describe(code, "no file has its source");
  }
  return Choice::below;
}

void Watch::describe(PyObject* code, const std::string& why_not, const std::string& module) {
  const auto* fields = reinterpret_cast<PyCodeObject*>(code);
  const WatchReport::Function seen{speculate::text_of(fields->co_qualname), file_of(code), module,
                                   fields->co_firstlineno, why_not};
  if (std::ranges::find(seen_.functions, seen) == seen_.functions.end())
    seen_.functions.push_back(seen);
}

WatchReport Watch::told() const {
  WatchReport report = seen_;
  report.seconds = (paused_.value_or(now()) - start_) / 1e3;
  return report;
}

/// Whether modules were loaded not long ago.
bool Watch::has_new_modules() {
  constexpr int kLooksAfterModules = 40;  // a second; chosen, not measured
  const Py_ssize_t loaded = PyDict_Size(PyImport_GetModuleDict());
  if (loaded != std::exchange(modules_, loaded)) looks_left_ = kLooksAfterModules;
  if (looks_left_ == 0) return false;
  --looks_left_;
  return true;
}

/// Functions that an earlier run has found, if they are defined by now.
void Watch::convert_expected() {
  const double start = thread_seconds();
  const Object function_at = python::import_attribute("torchjanus.history", "function_at");
  std::erase_if(expected_, [&](const ExpectedEntryPoint& each) {
    const Object function = python::call(
        function_at.get(), {python::string(each.module).get(), python::string(each.name).get(),
                            python::string(each.file).get(), python::integer(each.line).get()});
    if (!PyFunction_Check(function.get())) return false;
    convert_function(function.get());
    return true;
  });
  spend_on_conversion(1e3 * (thread_seconds() - start));
}

void Watch::convert(PyObject* code) {
  known_[code] = {Object::borrow(code), {}};
  const std::vector<Object> functions = functions_with(code);
  if (functions.empty()) return describe(code, "the function is gone");
  // Wrappers of a decorator, for instance: each calls another function.
  if (functions.size() > 1) return describe(code, "several functions share its code");
  convert_function(functions.front().get());
}

void Watch::convert_function(PyObject* function) {
  const Object code = Object::borrow(PyFunction_GET_CODE(function));
  known_[code.get()] = {code, {}};
  const auto [made, why_not] = outline(function, /*may_be_whole=*/true);
  const Object module = python::attribute(function, "__module__");
  describe(code.get(), why_not,
           PyUnicode_Check(module.get()) ? python::to_string(module.get()) : "");
  log("speculate",
      cat("an entry point: ", speculate::describe_object(function), ", ", made.size(), " regions"));
  if (made.empty()) return;
  known_[code.get()].regions = made;
  PyObject* replaced = PyFunction_GET_CODE(function);
  known_[replaced] = {Object::borrow(replaced), made};
}

// --- the clock -----------------------------------------------------------------------------------

std::atomic<bool> is_posted = false;
int watchers = 0;  // guarded by the interpreter's lock

/// Of the thread that posts looks. Each has its own, as a later one may begin before it has
/// noticed.
using Ended = std::shared_ptr<std::atomic<bool>>;
Ended is_over;

void end_clock() {
  if (is_over != nullptr) *is_over = true;
}

void end_watch(const std::string& error) {
  log("speculate", cat("watching ends: ", error));
  watch->fail(error);
  end_clock();
}

/// A pending call of the interpreter's main thread. Errors of ours end the watch, not the program.
int look(void* /*unused*/) {
  is_posted = false;
  if (watchers == 0) return 0;
  const python::ErrorScope scope;
  const python::GcPause pause;
  try {
    watch->look();
  } catch (const python::ErrorSet&) {
    end_watch(python::take_error_message());
  } catch (const std::exception& error) {
    end_watch(error.what());
  }
  return 0;
}

void post_looks(const Ended& ended) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  while (!*ended) {
    std::this_thread::sleep_for(std::chrono::milliseconds(policy::kBetweenLooks));
    if (*ended || is_posted.exchange(true)) continue;
    if (Py_AddPendingCall(look, nullptr) != 0) is_posted = false;
  }
}

void begin_clock() {
  is_over = std::make_shared<std::atomic<bool>>(false);
  try {
    std::thread(post_looks, is_over).detach();
  } catch (const std::system_error&) {
    end_clock();  // no thread can be started: the program runs as it is
  }
}

}  // namespace

bool watch_for_entry_points() {
  if (options().is_disabled(kEntryPointsSwitch.name)) return false;
  if (watchers++ > 0) return true;
  if (watch == nullptr) {
    watch = new Watch;
    Py_AtExit(end_clock);
  }
  watch->resume();
  if (!watch->has_failed()) begin_clock();
  return true;
}

void stop_watching() {
  if (watchers == 0 || --watchers > 0) return;
  end_clock();
  watch->pause();
}

void expect_entry_points(std::vector<ExpectedEntryPoint> expected) {
  if (watch != nullptr) watch->expect(std::move(expected));
}

std::optional<WatchReport> watch_report() {
  if (watch == nullptr) return std::nullopt;
  return watch->told();
}

}  // namespace janus::bind
