// The tiering policy: what to do with a call of a converted function or run of statements.
//
//   profile ──► generate ──► graphs in a cache ──► hit: run the graph
//                  ▲                 │ miss or bailout
//                  └── relax ◄───────┘ (this call runs in Python)
//
// A new graph is generated only if a fact has changed, or for an object or an outcome of a test
// that no graph covers yet; both are bounded. Errors here (InternalError, any C++ exception) are
// reported once, and the function runs eagerly from then on. The GIL guards all state. A running
// program releases it, so everything is written to be re-entered.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/policy.h"
#include "speculate/ab_measurement.h"
#include "speculate/call_history.h"
#include "speculate/entry.h"
#include "speculate/observations.h"
#include "speculate/reason.h"
#include "speculate/region_account.h"

namespace janus::speculate {

/// The counters of one function, for reports and tests.
struct Counters {
  uint64_t calls = 0;
  uint64_t hits = 0;         ///< calls that ran as a graph
  uint64_t misses = 0;       ///< calls that fitted no graph in the cache
  uint64_t aborts = 0;       ///< calls whose graph bailed out, by a guard or an error
  uint64_t relaxations = 0;  ///< entry assumptions that were generalised
  uint64_t generated = 0;    ///< graphs ever generated
  uint64_t bypassed = 0;     ///< calls left to Python because of a debugger or a mode
  uint64_t retired = 0;      ///< graphs dropped because an object they need died
  uint64_t profiled = 0;     ///< profiled runs that have ended
  uint64_t passed = 0;       ///< runs in Python after graphs were given up for good, not in `calls`
};

/// Milliseconds.
struct Durations {
  double profiling = 0, generating = 0, optimising = 0, compiling = 0;
  double running = 0;  ///< of its graphs, of all threads
};

struct DispatchOptions {
  int profile_runs = policy::kProfiledRuns;
  /// A graph that computes less is not worth its entry, in the time of views (graph/cost.h).
  int least_work = policy::kLeastWork;
};

/// A fallback with TORCHJANUS_STRICT: the call raises instead of running imperatively.
struct StrictFallback {
  std::string message;
  /// As a Python exception (RuntimeError).
  void raise() const;
};

class Dispatcher {
 public:
  enum class State { profiling, compiling, graph, imperative, cut };
  /// How a call runs that no graph took.
  enum class Otherwise { plain, profile };
  struct Attempt {
    bool ran = false;       ///< as a graph; or an exception is set that must be raised
    python::Object result;  ///< null: a Python exception is set
    Otherwise otherwise = Otherwise::plain;
    /// No graph fits, but a better one is being compiled, or is made once the account covers it:
    /// such a call tells nothing about whether graphs pay.
    bool awaits_graph = false;
  };

  /// `name`, `file`, `line`: for reports. `facts_key`: see ProfileStore.
  Dispatcher(std::string name, std::string file, int line, DispatchOptions options);
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  /// Whether calls may skip attempt() from now on.
  bool is_disabled() const { return is_disabled_; }
  /// A run in Python that skipped attempt().
  void count_passed() {
    if (++counters_.passed == look_again_at_) look_again();
  }
  /// Whether it was given up for having no tensor work, and profiled again later.
  bool has_looked_again() const { return has_looked_again_; }
  /// Whether it was given up for having no tensor work, and will be profiled again.
  bool will_look_again() const { return look_again_at_ != 0; }
  /// Its owner has been left to Python for long: it is profiled again in its next run.
  void look_again_if_due() {
    if (will_look_again()) look_again();
  }
  /// Whether a graph ran, and a profiled run met tensors: what its runs take tells something.
  bool has_run_with_tensors() const { return counters_.hits > 0 && has_ever_met_tensors_; }
  /// Whether this call skips attempt(), since the account did not cover a graph just before.
  bool waits() {
    if (!account.waits()) return false;
    ++counters_.calls;
    return true;
  }
  /// Tries to run the call as a graph. Never throws. The call's facts_key must be set.
  Attempt attempt(const Call& call);
  /// A profiled call has ended, possibly by an exception, after so many milliseconds.
  void profile_finished(double milliseconds);
  /// A call has ended with this result, as a graph or in Python.
  void call_ended(PyObject* result) {
    if (measurement_.awaits_end()) measurement_.ended(!may_leave_gradients(result));
  }
  /// Stays imperative from now on. Throws StrictFallback if fallbacks are errors.
  void disable(Reason reason);
  /// The converted code has been replaced: forgets all graphs and the profile.
  void start_over(Reason reason);
  /// This call can't be converted: counts and remembers the reason; later calls may try again.
  void note(Reason reason);
  /// Stays imperative as a whole, because the owner has cut its statements.
  void disable_as_cut();
  /// The refusal for which the owner may cut a run of statements: more than one call was refused,
  /// and the whole never had a graph, or its graphs were left too often. Null if there is none.
  const Reason* refusal_to_cut() const;
  /// Takes over what another dispatcher has observed of the same variables.
  void inherit(const Dispatcher& other) { observations_ = other.observations_; }
  /// Numbers of this variable will vary, even if the first calls have not shown it.
  void expect_to_vary(std::string variable) { observations_.expect_to_vary(std::move(variable)); }

  /// The variables or parameters that the profile observes: names and values.
  using Roots = std::vector<std::pair<std::string, PyObject*>>;
  /// Set by the owner: the roots of a call.
  Roots (*roots)(const Call& call) = nullptr;

  /// Set by an owner that adds to reports: extends the dict of `describe`. Returns a new dict, or
  /// null with an exception set.
  using Describe = PyObject* (*)(const Dispatcher&);
  std::function<PyObject*(Describe describe)> tell;
  bool is_part = false;  ///< of a cut function, whose report includes it
  /// What converting it costs and saves.
  RegionAccount account;
  /// The process's account pays: for an owner whose conversion nobody asked for.
  void open_account() { account.open({name_, file_, line_}); }
  /// It pays for the whole, if for anything, and now for this part of it.
  void open_account_of_part(const Dispatcher& whole) {
    if (!whole.account.is_open()) return;
    open_account();
    account.continue_from(whole.account, whole.counters_.calls);
  }

  const std::string& name() const { return name_; }
  const std::string& file() const { return file_; }
  int line() const { return line_; }
  State state() const;
  /// Whether a graph waits for its kernels to be compiled.
  bool is_compiling() const { return compiling_ != nullptr; }
  const Counters& counters() const { return counters_; }
  const Durations& durations() const { return durations_; }
  /// Runs in Python that were timed, and their milliseconds without graphs that ran within them.
  struct InPython {
    uint64_t runs = 0;
    double milliseconds = 0;
  };
  const InPython& in_python() const { return in_python_; }
  /// Times a run in Python, from its construction to its end.
  class PythonRun {
   public:
    explicit PythonRun(Dispatcher& dispatcher);
    ~PythonRun();
    PythonRun(const PythonRun&) = delete;
    PythonRun& operator=(const PythonRun&) = delete;

   private:
    Dispatcher& dispatcher_;
    double start_, in_graphs_;
  };
  /// How many runs are profiled before the first graph is made.
  int profile_runs() const { return options_.profile_runs; }
  /// Whether it stays imperative because graphs within it take most of its time already.
  bool holds_graphs() const { return holds_graphs_; }
  const AbMeasurement& measurement() const { return measurement_; }
  /// Counters, and what runs have taken so far.
  struct Progress {
    Counters counters;
    Durations durations;
    InPython in_python;
  };
  const CallHistory<Progress>& history() const { return history_; }
  Progress progress() const { return {counters_, durations_, in_python_}; }
  struct Noted {
    Reason reason;
    uint64_t count = 1;
  };
  const std::deque<Noted>& reasons() const { return reasons_; }
  const std::deque<std::shared_ptr<Entry>>& entries() const { return entries_; }

  /// All dispatchers of the process, oldest first.
  static const std::vector<Dispatcher*>& all();
  /// Seconds from the first profile run of the process to the first graph run; negative: none yet.
  static double seconds_until_first_graph();
  /// Milliseconds of all runs of graphs on this thread, nested ones twice.
  static double milliseconds_in_graphs() { return graph_runs.milliseconds; }

 private:
  class Generating;
  class Outdated;

  /// A count of runs of graphs, and their milliseconds.
  struct GraphRuns {
    double milliseconds = 0;
    uint64_t count = 0;
  };
  /// The sum over this thread.
  static thread_local GraphRuns graph_runs;
  /// Whether most of the last profiled run was spent in graphs already.
  bool is_graphs_already() const;

  using Outcomes = std::vector<ChosenOutcome>;
  enum class Result { ran, missed, left };

  Attempt attempt_unguarded(const Call& call, bool& committed);
  /// Whether this call must run in Python although there are graphs: to measure, or because the
  /// graphs turned out slower.
  bool is_without_graphs(const Environment& environment);
  Attempt profile_or_generate(const Call& call, const Environment& environment, bool& committed);
  Attempt try_entries(const Call& call, const Environment& environment, bool& committed);
  Attempt missed(const Call& call, const Environment& environment, const Mismatch& mismatch,
                 bool& committed);
  Attempt left(const Call& call, const Environment& environment,
               const std::vector<Outcomes>& candidates, bool& committed);
  bool had_its_chance(const Outcomes& wanted);
  /// Exponential backoff while a better graph waits for its share of time: until a call runs as a
  /// graph again, ever more calls go to Python at once.
  void pause();
  Attempt outgrown(const Call& call, const Environment& environment,
                   const std::shared_ptr<Entry>& entry, bool& committed);
  /// Runs one graph. `wanted` becomes the outcomes that a better graph would follow.
  Result run_entry(const std::shared_ptr<Entry>& entry, std::vector<python::Object> captured,
                   python::Object& result, bool& committed, Outcomes& wanted);
  /// Moves the compiling graph to the cache; false if it is not ready.
  bool admit();
  /// Generates a graph for this call and runs it, or leaves it to the background compiler.
  Attempt generate_and_run(const Call& call, const Environment& environment, const Outcomes& chosen,
                           bool& committed);
  /// While the kernels of the first graph compile, the next calls are compared with it. If one
  /// differs in what a graph can leave open, a size or a number, the graph is made anew at once.
  Attempt look_ahead(const Call& call, const Environment& environment, bool& committed);
  /// A graph for all that varies; null if it was refused, which is not noted.
  std::shared_ptr<Entry> generate_general(const Call& call, std::optional<Reason>& refusal);
  /// Runs the new graph, whose guards held for the call and captured these, once it is compiled.
  Attempt put_to_use(const std::shared_ptr<Entry>& entry, const Outcomes& chosen,
                     std::vector<python::Object> captured, const Call& call, bool& committed);
  /// Null if the call was refused; the reason is noted.
  std::shared_ptr<Entry> generate(const Call& call, const Outcomes& chosen);
  /// The graph before the passes; nullopt: refused.
  std::optional<Generated> interpret(const Call& call, std::optional<Reason>& refusal);
  std::shared_ptr<Entry> generate_with(const Call& call, const Outcomes& chosen, bool relaxed,
                                       std::optional<Reason>& refusal);
  /// Interprets the code for a short time while its graph is too dear. What is refused early, as a
  /// loop of whole generations may be, is then cut now, and not when a graph of all could be paid.
  void probe(const Call& call);
  bool may_probe() const;
  void refused(const Reason& reason);
  /// Code without tensor work stays in Python, and is profiled again after ever more runs: a loop
  /// may fill a buffer before it trains.
  void give_up_without_work(const Reason& reason);
  void look_again();
  bool observe(const Call& call, std::string_view of = {});
  void visit_values(const Call& call, const Guards::Visit& visit) const;
  std::map<std::string, ValueFact, std::less<>> path_facts(const Call& call) const;
  bool has_ever_new_numbers() const;
  bool is_often_left() const;
  bool may_generate() const;
  /// Whether generating has taken no more than its share of the program's time.
  bool can_afford_generation();
  /// Whether the account covers the next graph.
  bool is_covered();
  /// A run as a graph that took so many milliseconds.
  void save(double milliseconds);
  void penalise(int amount, const std::string& why);
  Attempt out_of_memory(bool committed);
  Attempt internal_error(const std::string& what, bool committed);
  /// Throws StrictFallback if fallbacks are errors and this is one.
  void fall_back(const Reason& reason);
  /// Tells who listens that a graph has reached a stage (stages.h).
  void reach(const char* stage) const;
  bool may_have_work() const { return saw_tensor_ || options_.profile_runs == 0; }
  /// The reason, with this function's line if it has none.
  Reason located(Reason reason) const;
  void drop_retired();

  const std::string name_, file_;
  const int line_;
  const DispatchOptions options_;
  int runs_left_;
  bool is_disabled_ = false;
  bool is_cut_ = false;
  bool is_unstable_ = false;  ///< its graphs were given up, as assumptions failed too often
  bool holds_graphs_ = false;
  bool generating_ = false;
  bool pending_ = false;               ///< the next miss generates a graph
  bool went_unused_ = false;           ///< the last graph lost its objects before it could run
  int unused_ = 0;                     ///< how often that was so
  uint64_t paid_off_ = 0;              ///< graphs that ran often before their objects went
  bool saw_tensor_ = false;            ///< among the entry's values or in a profiled run
  bool has_ever_met_tensors_ = false;  ///< in a profiled run, not only in the last ones
  uint64_t tensors_before_ = 0;
  GraphRuns graph_runs_before_;  ///< when the profiled run began
  GraphRuns graph_runs_within_;  ///< within the last profiled run
  double profiled_ = 0;          ///< its milliseconds
  bool is_probed_ = false;
  int refusals_ = 0;
  std::optional<Reason> last_refusal_;
  uint64_t retry_at_ = 0;  ///< the number of the call that tries a refused function again
  int penalty_ = 0;
  uint64_t look_again_at_ = 0;  ///< the run in Python before which the profile looks again; 0: none
  bool has_looked_again_ = false;
  bool was_left_for_refused_ = false;        ///< a call that no graph fitted was refused
  int pause_ = 0;                            ///< calls of the last pause
  int calls_to_pause_ = 0;                   ///< calls left of this pause
  double first_met_ = 0;                     ///< in milliseconds, as now() counts
  std::map<std::string, int> aborts_of_;     ///< by wanted outcomes
  std::map<std::string, int> refusals_of_;   ///< by wanted outcomes, or by failed assumption
  std::map<std::string, size_t> graphs_of_;  ///< made for new values of a formula, by formula
  Observations observations_;
  bool texts_are_inputs_ = true;  ///< those that are ever new; false: that can't be converted
  std::deque<std::shared_ptr<Entry>> entries_;
  const Entry* ran_after_bailout_ = nullptr;  ///< in the last call that ran; only compared
  std::shared_ptr<Entry>
      compiling_;  ///< its kernels are compiling; no other graph is made meanwhile
  std::shared_ptr<Entry> outdated_;  ///< by this call, before its kernels were compiled
  int looked_ahead_ = 0;             ///< calls
  uint64_t abandoned_ = 0;           ///< graphs that were outdated before they were compiled
  AbMeasurement measurement_;
  uint64_t news_ = 0;                ///< graphs made, and runs profiled since the first graph
  std::shared_ptr<Entry> outgrown_;  ///< a graph whose run met what the profile had not seen
  std::deque<Noted> reasons_;
  std::optional<Reason> fallback_;  ///< why calls run imperatively, with TORCHJANUS_STRICT
  Counters counters_;
  Durations durations_;
  InPython in_python_;
  CallHistory<Progress> history_;
};

}  // namespace janus::speculate
