// Co-execution: a function or a loop that stays imperative runs in Python as it stands, while the
// operators that it calls are noted and run as graphs (src/lazy/).
//
// It is done where it pays. Calls, or turns of some iterations each, first show how long they take.
// Then they run lazily until most of their operators run in graphs, and after that both ways by
// turns until it is clear which is faster. What calls other operators each time soon goes back to
// eager execution. Of functions and loops within each other one is decided at a time, the outermost
// first. Guarded by the GIL.
#pragma once

#include <Python.h>

#include <optional>
#include <string_view>

#include "base/ab_test.h"
#include "base/ahead_choice.h"
#include "base/options.h"
#include "bind/co_execution_record.h"
#include "lazy/session.h"

namespace janus::bind {

inline constexpr Switch kLazySwitch{
    "lazy", "operators of functions and loops that stay imperative are noted and run as graphs"};

class CoExecution {
 public:
  enum class Kind { function, loop };
  /// `on_account`: nobody asked for it, so the account of the process pays, if there is one.
  explicit CoExecution(Kind kind = Kind::function, bool on_account = false)
      : kind_(kind), on_account_(on_account) {}

  /// As PyObject_Vectorcall.
  PyObject* call(PyObject* callee, PyObject* const* arguments, size_t flags,
                 PyObject* keyword_names);

  enum class Stage { looking, warming, comparing, co_executed, eager };

  /// A stretch of a thread's time that runs in one way: a call, or some iterations of a loop.
  struct Turn {
    bool is_open = false, is_lazy = false;
    Stage stage = Stage::looking;  ///< in which it began
    int iterations = 0;            ///< that have ended
    double start = 0;
    double used = 0;  ///< milliseconds of processor time before it, if there is an account
    lazy::Session::Progress before, last;
    std::optional<Recording> recording;
    bool chooses = false;  ///< whether its work runs ahead: one thread at a time does
    const CoExecution* around = nullptr;  ///< given up; the turn is within one of its iterations
  };
  /// Begins a turn, unless the next stretch tells nothing: then it stays closed. `with_frame`:
  /// whether lines of the running frame belong to it.
  void begin(Turn& turn, bool with_frame);
  /// An iteration, or the call, has ended. Returns whether the turn goes on.
  bool end_iteration(Turn& turn);
  /// Ends the turn. `tells`: its time can be compared. False with an exception set if memory runs
  /// out.
  bool end(Turn& turn, bool tells);
  /// Whether begin() would do nothing, for good or for the next call.
  bool rests() { return stage_ == Stage::eager && (rest_ == 0 || --rest_ != 0); }

  /// Whether a turn of this thread is open that will decide something: nothing in it is measured.
  static bool is_any_undecided();

  /// Whether it was tried, and is eager for good.
  bool is_given_up() const { return stage_ == Stage::eager && rest_ == 0; }

  Kind kind() const { return kind_; }
  /// For reports: "eager", "undecided" or "co-executed".
  std::string_view state() const;
  /// Why it is eager for good; empty if it is not.
  std::string_view why_not() const { return why_not_; }
  /// Milliseconds of a call or an iteration, eagerly and lazily; 0 before they were compared.
  double eager_milliseconds() const { return test_.has_both() ? 1e3 * test_.with_old() : 0; }
  double lazy_milliseconds() const { return test_.has_both() ? 1e3 * test_.with_new() : 0; }
  const CoExecutionRecord& record() const { return record_; }

 private:
  int iterations_of_turn() const;
  bool is_next_lazy() const;
  void begin_lazy(Turn& turn);
  void decide(const Turn& turn, double seconds, double used);
  void decide_after_look(const Turn& turn, double seconds, double used);
  void decide_after_warming(const Turn& turn);
  void compare(const Turn& turn, double seconds);
  void watch(const lazy::Session::Progress& before, const lazy::Session::Progress& now);
  bool is_covered(bool begins) const;
  void pay(const Turn& turn, double used);
  void enter(Stage stage, int poor = 0);
  void give_up(std::string_view why);
  void give_up_for_now(std::string_view why);

  Kind kind_;
  bool on_account_;
  Stage stage_ = Stage::looking;
  int calls_ = 0;       ///< or iterations, in this stage
  int settling_ = 0;    ///< lazy turns that were not compared, as graphs were yet to come
  int poor_ = 0;        ///< lazy ones in which most operators ran one by one, and waiting is no use
  uint64_t rest_ = 0;   ///< calls or turns until it is looked at again; 0: never
  uint64_t total_ = 0;  ///< calls or iterations in turns so far
  double seconds_ = 0;  ///< in the stage of looking
  double used_ = 0;     ///< milliseconds of processor time in it
  double used_by_call_ = 0;          ///< the mean of that
  double own_ = 0;                   ///< milliseconds of processor time in all turns
  double spent_ = 0;                 ///< of these: on graphs
  lazy::Session::Progress watched_;  ///< in this stage, once it is decided
  AbTest test_;
  AheadChoice ahead_;         ///< once it is co-executed
  bool has_chooser_ = false;  ///< a turn is open whose work it decides on
  std::string_view why_not_;
  CoExecutionRecord record_;
};

}  // namespace janus::bind
