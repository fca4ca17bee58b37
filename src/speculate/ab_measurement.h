// Online measurement whether graphs pay: runs with and without them take turns until it is clear.
//
// A run is timed from its beginning to its end. If it leaves a backward run to the caller (its
// results require gradients), or if its end is unknown, it is timed up to the beginning of the next
// run; what happens between two runs is the same for both variants. Only runs of one kind are
// compared: with gradients or without, timed in one of these ways.
//
// At each change of variant, memory that only the other one needs goes back to the system, and the
// run that allocates it again does not count. Slower runs of the measurement may cost a small share
// of the time that has passed; beyond that the measurement waits. If graphs are far ahead of the
// profiled runs, nothing is measured. Guarded by the GIL.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ab_test.h"
#include "python/object.h"

namespace janus::speculate {

/// Whether measured times influence decisions: these measurements, and the time for making graphs.
/// Tests that count calls switch it off.
extern bool times_decide;

/// For tests: simulated time, in milliseconds.
struct SimulatedTime {
  double now = 1;
  double with_graphs = 0, without = 0;  ///< the time of a run
};
extern std::optional<SimulatedTime> simulated_time;

class AbMeasurement {
 public:
  AbMeasurement() = default;
  ~AbMeasurement() { leave(); }
  AbMeasurement(const AbMeasurement&) = delete;
  AbMeasurement& operator=(const AbMeasurement&) = delete;

  /// A profiled run in Python begins.
  void profiled();
  /// A run that nobody times begins: the one before it ends nobody's time.
  void skipped() { started_ = ended_ = 0; }
  /// The run that has begun tells nothing: its time is not counted.
  void leave_out();
  /// A run begins. Returns whether it must do without graphs. `news` changes with anything new (a
  /// profile run, a graph); the measurement begins some runs after the last change.
  bool begins(uint64_t news, bool with_gradients);
  /// Whether ended() must be called when this run ends.
  bool awaits_end() const { return started_ != 0 && !is_end_known_; }
  /// The run has ended. `is_complete`: no backward run that belongs to it will follow.
  void ended(bool is_complete);
  const AbTest& test() const { return test_; }
  /// Milliseconds that a run as a graph has saved which took so many itself; nullopt: the two ways
  /// were not both timed.
  std::optional<double> gain_of_run(double milliseconds) const;

  /// What is known of the speed, for reports.
  struct Speed {
    double with_graphs = 0, without = 0;  ///< milliseconds of a run, medians
    bool by_turns = false;  ///< else `without` is the fastest profiled run, which hooks slow down
  };
  /// nullopt: runs of one of the two ways were not timed.
  std::optional<Speed> speed() const;

 private:
  /// Where a run begins. Nested runs, and those of several threads, can't be compared.
  struct Place {
    unsigned long thread = 0;
    int depth = 0;
    bool operator==(const Place&) const = default;
  };
  static Place here();
  void restart();
  /// Milliseconds of the run before this one; 0 if that was elsewhere, or of another kind.
  double lap();
  bool may_try(double time);
  void count(double taken);
  double quiet_time() const;
  /// Whether enough runs before the measurement, and a profiled one, were timed.
  bool has_quiet_time() const;
  bool is_far_ahead() const;
  void change_variant();
  bool enter();
  void leave();

  AbTest test_;
  uint64_t news_ = 0;
  int quiet_ = 0;
  bool is_without_ = false;      ///< the timed run's variant
  bool counts_ = true;           ///< its variant is that of the run before, and the wanted one
  bool changes_ = false;         ///< its variant is not that of the run before
  bool is_interrupted_ = false;  ///< a run of the other kind, or left out, came before it
  bool with_gradients_ = false;
  int of_other_kind_ = 0;      ///< runs since the last one of the compared kind
  bool is_complete_ = false;   ///< the compared kind: timed from beginning to end
  double started_ = 0;         ///< 0: nothing is timed
  double ended_ = 0;           ///< 0: not yet, or not known
  bool is_end_known_ = false;  ///< ended() was called
  double tried_since_ = 0, spent_ = 0;
  Place place_;
  double least_profiled_ = 0;        ///< 0: unknown
  std::vector<double> quiet_times_;  ///< of the runs before the measurement
};

/// Whether a backward run may follow that belongs to a call with this result; null: the call
/// raised. Only numbers, text, tensors that graphs support, and containers of these are looked
/// into; any other object may hold a gradient.
bool may_leave_gradients(PyObject* result);

}  // namespace janus::speculate
