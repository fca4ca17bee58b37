// Whether graphs pay: what has them is run by turns with and without them, until it is clear.
//
// A run is timed from its start to that of the next one, so what it leaves to others counts as
// well: backward() of what it gave, for instance. What happens between two runs anyway is the same
// for both ways. Where the ways change, memory that only the other one needs goes back to the
// system; the run that first has to get its own from there does not count. Where graphs are far
// ahead of the runs that were profiled, nothing is tried. Guarded by the GIL.
#pragma once

#include <cstdint>
#include <vector>

#include "base/trial.h"

namespace janus::speculate {

/// Whether times decide what runs how: contests, and what may be spent on graphs. Tests that count
/// calls do without.
extern bool times_decide;

class Contest {
 public:
  Contest() = default;
  ~Contest() { leave(); }
  Contest(const Contest&) = delete;
  Contest& operator=(const Contest&) = delete;

  /// A run in Python begins, which is profiled.
  void profiled();
  /// A run begins; `news` changes with anything new (a profile run, a graph), which has to be over
  /// for a while. Whether this run is to be one without graphs.
  bool begins(uint64_t news);
  const Trial& trial() const { return trial_; }

 private:
  /// Where a run begins: those within others, or of several threads, can't be compared.
  struct Place {
    unsigned long thread = 0;
    int depth = 0;
    bool operator==(const Place&) const = default;
  };
  static Place here();
  /// Milliseconds since the run before this one began; 0 if that was elsewhere.
  double lap();
  bool is_far_ahead() const;
  void change_ways();
  bool enter();
  void leave();

  Trial trial_;
  uint64_t news_ = 0;
  int quiet_ = 0;
  bool is_without_ = false;  ///< the run that is being timed
  bool counts_ = true;       ///< it goes the way of the one before it
  double started_ = 0;       ///< 0: nothing is being timed
  Place place_;
  double least_profiled_ = 0;        ///< 0: unknown
  std::vector<double> quiet_times_;  ///< of runs before any turns
};

}  // namespace janus::speculate
