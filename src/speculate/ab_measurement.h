// Whether graphs pay: what has them is run by turns with and without them, until it is clear.
//
// A run is timed from its beginning to its end. Where it leaves a backward run to others (results
// that require gradients) or nobody can tell its end, it is timed up to the beginning of the next
// one; what happens between two runs anyway is the same for both ways. Only runs of one kind are
// compared: with gradients or without, timed in the one way or the other.
//
// Where the ways change, memory that only the other one needs goes back to the system; the run that
// first has to get its own from there does not count. What trial runs take beyond runs with graphs
// is a small share of the time that has gone by: where it would be more, the trial waits. Where
// graphs are far ahead of the runs that were profiled, nothing is tried. Guarded by the GIL.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ab_test.h"
#include "python/object.h"

namespace janus::speculate {

/// Whether times decide what runs how: contests, and what may be spent on graphs. Tests that count
/// calls do without.
extern bool times_decide;

/// For tests: time that passes as they say, in milliseconds.
struct SimulatedTime {
  double now = 1;
  double with_graphs = 0, without = 0;  ///< what a run takes
};
extern std::optional<SimulatedTime> simulated_time;

class AbMeasurement {
 public:
  AbMeasurement() = default;
  ~AbMeasurement() { leave(); }
  AbMeasurement(const AbMeasurement&) = delete;
  AbMeasurement& operator=(const AbMeasurement&) = delete;

  /// A run in Python begins, which is profiled.
  void profiled();
  /// A run begins; `news` changes with anything new (a profile run, a graph), which has to be over
  /// for a while. Whether this run is to be one without graphs.
  bool begins(uint64_t news, bool with_gradients);
  /// Whether somebody wants to know when the run ends that has begun.
  bool awaits_end() const { return started_ != 0 && !is_end_known_; }
  /// It has ended; `is_complete`: there is no backward run to come that belongs to it.
  void ended(bool is_complete);
  const AbTest& test() const { return test_; }

 private:
  /// Where a run begins: those within others, or of several threads, can't be compared.
  struct Place {
    unsigned long thread = 0;
    int depth = 0;
    bool operator==(const Place&) const = default;
  };
  static Place here();
  void restart();
  /// Milliseconds that the run before this one took; 0 if that was elsewhere, or of another kind.
  double lap();
  bool may_try(double time);
  void count(double taken);
  bool is_far_ahead() const;
  void change_ways();
  bool enter();
  void leave();

  AbTest test_;
  uint64_t news_ = 0;
  int quiet_ = 0;
  bool is_without_ = false;  ///< the run that is being timed
  bool counts_ = true;       ///< it goes the way of the one before it, and the one that is wanted
  bool changes_ = false;     ///< it goes the other way than the one before it
  bool is_interrupted_ = false;  ///< runs of the other kind came before it
  bool with_gradients_ = false;
  int of_other_kind_ = 0;      ///< runs, since the last one of the kind that is compared
  bool is_complete_ = false;   ///< the kind: timed from beginning to end
  double started_ = 0;         ///< 0: nothing is being timed
  double ended_ = 0;           ///< 0: not yet, or not known
  bool is_end_known_ = false;  ///< ended() was called: what it says is not asked twice
  double tried_since_ = 0, spent_ = 0;
  Place place_;
  double least_profiled_ = 0;        ///< 0: unknown
  std::vector<double> quiet_times_;  ///< of runs before any turns
};

/// Whether a backward run may come that belongs to a call that gave that; null: it raised. What is
/// no tensor of a kind that graphs have, number, text or container of such may hold anything.
bool may_leave_gradients(PyObject* result);

}  // namespace janus::speculate
