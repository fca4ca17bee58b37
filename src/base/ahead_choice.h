// Whether work that nobody needs yet runs ahead, on the runner's thread while Python goes on, or
// waits until somebody needs it.
//
// Running ahead pays where Python and the graphs take about as long as each other. It does not
// where kernels use all processors anyway, or where most of the work would never have run. So it is
// measured: the thread's time is cut into stretches of some looks each, at whose ends all work is
// done. First it is found out how much could overlap. Then stretches take turns, ahead and not.
#pragma once

#include <cstdint>

#include "base/ab_test.h"
#include "base/options.h"

namespace janus {

inline constexpr Switch kGraphRunnerSwitch{
    "graph_runner", "work that a look leaves can run on a thread of its own while Python goes on"};

class AheadChoice {
 public:
  /// Sums since the thread's session began.
  struct Reading {
    double now = 0;          ///< seconds on the steady clock
    double in_segments = 0;  ///< of these, the thread's own in running segments
    uint64_t noted = 0;      ///< calls
    uint64_t in_graphs = 0;  ///< of these
    uint64_t ahead = 0;      ///< segments that ran ahead
    uint64_t news = 0;       ///< changes with each graph, and while one is compiled
  };

  /// Whether work runs ahead now.
  bool is_ahead() const { return is_ahead_; }
  /// A look, or the end of a cycle, has left work. Whether that ends a stretch: then all work has
  /// to run, and end_stretch() is called.
  bool leaves_work();
  /// From here to go_on(), the session's work is not this choice's.
  void pause(const Reading& reading) { paused_ = reading; }
  void go_on(const Reading& reading);
  void end_stretch(const Reading& reading);
  /// Work runs ahead from now on. Nothing is measured until it has for long.
  void keep();

 private:
  enum class Stage { looking, warming, comparing, decided };

  void enter(Stage stage, bool ahead);
  void decide(bool ahead);
  void add_overlap(double share);
  void compare(double seconds_of_call);

  Stage stage_ = Stage::looking;
  bool is_ahead_ = false;
  int64_t points_ = 0;  ///< of this stretch, or since the decision
  int settled_ = 0;     ///< stretches of this stage in which nothing new happened
  int unsettled_ = 0;   ///< the others
  double overlap_ = 0;  ///< sum over the settled ones, of what could overlap of their time
  int64_t rest_ = 0;    ///< points from a decision until it is looked at again
  Reading last_, paused_;
  AbTest test_;
};

}  // namespace janus
