// Policy: what to do with a call of a converted function or run of statements.
//
//   profile ──► generate ──► graphs in a cache ──► hit: run the graph
//                  ▲                 │ miss, or a graph was left
//                  └── relax ◄───────┘ (the call itself runs imperatively)
//
// A graph is generated again only after a fact has really changed, or for an object or an outcome
// of a test for which there is no graph yet; both are bounded. What goes wrong here (InternalError,
// any C++ exception) is reported once and the function runs eagerly from then on. All state is
// guarded by the GIL; a program runs without it, so everything is written to be re-entered.
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
#include "speculate/entry.h"
#include "speculate/observations.h"
#include "speculate/reason.h"

namespace janus::speculate {

/// What is counted of one function; read by reports and tests.
struct Counters {
  uint64_t calls = 0;
  uint64_t hits = 0;         ///< calls that ran as a graph
  uint64_t misses = 0;       ///< calls that no graph in the cache fitted
  uint64_t aborts = 0;       ///< calls whose graph was left by a guard or an error
  uint64_t relaxations = 0;  ///< entry facts that became more general
  uint64_t generated = 0;    ///< graphs ever generated
  uint64_t bypassed = 0;     ///< calls left alone because something watched (a debugger, a mode)
  uint64_t retired = 0;      ///< graphs dropped because what they were about is gone
};

/// Milliseconds.
struct Durations {
  double profiling = 0, generating = 0, optimising = 0, compiling = 0;
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
  /// How a call that no graph took is to run.
  enum class Otherwise { plain, profile };
  struct Attempt {
    bool ran = false;       ///< as a graph, or an exception that has to be raised is set
    python::Object result;  ///< null: a Python exception is set
    Otherwise otherwise = Otherwise::plain;
  };

  /// `name`, `file`, `line`: for reports. `facts_key`: see ProfileStore.
  Dispatcher(std::string name, std::string file, int line, DispatchOptions options);
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  /// Whether calls may skip attempt() for ever.
  bool settled() const { return settled_; }
  /// Tries to run the call as a graph. Never throws. The call's facts_key must be set.
  Attempt attempt(const Call& call);
  /// A call that was to be profiled has ended (also by an exception), after so many milliseconds.
  void profile_finished(double milliseconds);
  /// A call has ended and gave that, in whatever way it ran.
  void call_ended(PyObject* result) {
    if (measurement_.awaits_end()) measurement_.ended(!may_leave_gradients(result));
  }
  /// Stays imperative from now on. Throws StrictFallback if fallbacks are errors.
  void settle(Reason reason);
  /// What is converted is another from now on: forgets all graphs and what was seen.
  void start_over(Reason reason);
  /// Not to be converted in this call: counted and remembered, but not for ever.
  void note(Reason reason);
  /// Stays imperative as a whole: the owner has cut its statements.
  void settle_as_cut();
  /// The refusal after which the owner of a run of statements may cut it in parts: there never was
  /// a graph of the whole, and more than one call was refused. Null: nothing to cut for.
  const Reason* refusal_to_cut() const;
  /// Starts from what another dispatcher has seen of the same variables.
  void inherit(const Dispatcher& other) { observations_ = other.observations_; }

  /// Names of the variables or parameters whose values the profile watches, and where they are.
  using Roots = std::vector<std::pair<std::string, PyObject*>>;
  /// Set by the owner: the roots of a call.
  Roots (*roots)(const Call& call) = nullptr;

  /// Set by the owner if it has more to tell than what is counted here: a new dict that begins as
  /// what `describe` gives. Null with an exception set.
  using Describe = PyObject* (*)(const Dispatcher&);
  std::function<PyObject*(Describe describe)> tell;
  bool is_part = false;  ///< of something that is cut, and that tells of it

  const std::string& name() const { return name_; }
  const std::string& file() const { return file_; }
  int line() const { return line_; }
  State state() const;
  /// Whether a graph is not run yet because its kernels are being compiled.
  bool is_compiling() const { return compiling_ != nullptr; }
  const Counters& counters() const { return counters_; }
  const Durations& durations() const { return durations_; }
  struct Noted {
    Reason reason;
    uint64_t count = 1;
  };
  const std::deque<Noted>& reasons() const { return reasons_; }
  const std::deque<std::shared_ptr<Entry>>& entries() const { return entries_; }

  /// All that exist, oldest first.
  static const std::vector<Dispatcher*>& all();
  /// Seconds from the first profile run of the process to the first graph run; negative: none yet.
  static double seconds_until_first_graph();

 private:
  /// Runs of graphs, and the milliseconds that they took.
  struct GraphRuns {
    double milliseconds = 0;
    uint64_t count = 0;
  };
  /// All of this thread.
  static thread_local GraphRuns graph_runs;
  /// Whether too little of what was profiled last was not in a graph already.
  bool is_graphs_already() const;

  using Outcomes = std::vector<ChosenOutcome>;
  enum class Result { ran, missed, left };

  Attempt attempt_unguarded(const Call& call, bool& committed);
  /// Whether this call is to be one in Python although there are graphs: to find out, or because it
  /// was found that they are slower.
  bool is_without_graphs(const Environment& environment);
  Attempt profile_or_generate(const Call& call, const Environment& environment, bool& committed);
  Attempt try_entries(const Call& call, const Environment& environment, bool& committed);
  Attempt missed(const Call& call, const Environment& environment, const Mismatch& mismatch,
                 bool& committed);
  Attempt left(const Call& call, const Environment& environment,
               const std::vector<Outcomes>& candidates, bool& committed);
  bool had_its_chance(const Outcomes& wanted);
  /// A better graph will come once there is time to make it: until a call runs as a graph again,
  /// ever more calls are left to Python at once.
  void pause();
  Attempt outgrown(const Call& call, const Environment& environment,
                   const std::shared_ptr<Entry>& entry, bool& committed);
  /// Runs one graph; `wanted` becomes the outcomes a better graph would follow.
  Result run_entry(const std::shared_ptr<Entry>& entry, std::vector<python::Object> captured,
                   python::Object& result, bool& committed, Outcomes& wanted);
  /// Puts the graph that is being compiled into the cache; false: it is not ready.
  bool admit();
  /// Generates a graph for this call and runs it, or leaves it to be compiled.
  Attempt generate_and_run(const Call& call, const Environment& environment, const Outcomes& chosen,
                           bool& committed);
  /// Null if that was refused; the reason is noted.
  std::shared_ptr<Entry> generate(const Call& call, const Outcomes& chosen);
  std::shared_ptr<Entry> generate_with(const Call& call, const Outcomes& chosen, bool relaxed,
                                       std::optional<Reason>& refusal);
  void refused(const Reason& reason);
  bool observe(const Call& call);
  std::map<std::string, ValueFact, std::less<>> path_facts(const Call& call) const;
  bool has_ever_new_numbers() const;
  bool may_generate() const;
  /// Whether what generating took so far is in proportion to the time that the program runs.
  bool can_afford_generation() const;
  void penalise(int amount, const std::string& why);
  Attempt out_of_memory(bool committed);
  Attempt internal_error(const std::string& what, bool committed);
  /// Throws StrictFallback if fallbacks are errors and this is one.
  void fall_back(const Reason& reason);
  /// With this function's own line where none is known.
  Reason located(Reason reason) const;
  void drop_retired();

  const std::string name_, file_;
  const int line_;
  const DispatchOptions options_;
  int runs_left_;
  bool settled_ = false;
  bool is_cut_ = false;
  bool generating_ = false;
  bool pending_ = false;     ///< the next call that misses generates
  bool saw_tensor_ = false;  ///< among the entry's values or in a profile run
  uint64_t tensors_before_ = 0;
  GraphRuns graph_runs_before_;  ///< as the profiled run began
  GraphRuns graph_runs_within_;  ///< the last profiled run
  double profiled_ = 0;          ///< milliseconds that it took
  int refusals_ = 0;
  std::optional<Reason> last_refusal_;
  uint64_t retry_at_ = 0;  ///< number of the call at which a refused function is tried again
  int penalty_ = 0;
  int pause_ = 0;                            ///< calls that were last left to Python
  int calls_to_pause_ = 0;                   ///< calls that are still to be
  double first_met_ = 0;                     ///< in milliseconds, as now() counts
  std::map<std::string, int> aborts_of_;     ///< by outcomes wanted
  std::map<std::string, int> refusals_of_;   ///< by outcomes wanted, or by what did not hold
  std::map<std::string, size_t> graphs_of_;  ///< made since a formula had another value; by formula
  Observations observations_;
  std::deque<std::shared_ptr<Entry>> entries_;
  std::shared_ptr<Entry> compiling_;  ///< made, but its kernels are not; no other is made meanwhile
  AbMeasurement measurement_;
  uint64_t news_ = 0;                ///< graphs made and runs profiled since there are graphs
  std::shared_ptr<Entry> outgrown_;  ///< by what the run of a graph met
  std::deque<Noted> reasons_;
  std::optional<Reason> fallback_;  ///< why calls run imperatively, with TORCHJANUS_STRICT
  Counters counters_;
  Durations durations_;
  double spent_on_graphs_ = 0;  ///< the processor's milliseconds
};

}  // namespace janus::speculate
