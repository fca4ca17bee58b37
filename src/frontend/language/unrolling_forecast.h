// Whether the graph of an unrolled loop will be finished: what the first iterations cost tells what
// the others will. A graph that can't be is refused early, and its time is left to others.
#pragma once

#include <cstdint>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

class UnrollingForecast {
 public:
  /// `iterations`: how many the loop has at least, as was seen; -1: not known.
  UnrollingForecast(Interpreter& interpreter, int64_t iterations)
      : interpreter_(interpreter), iterations_(iterations) {}

  /// Refuses where the remaining iterations will not fit into the limits of a graph. `trips`:
  /// iterations before this one.
  void end_iteration(int64_t trips);

 private:
  /// What is left at a moment.
  struct Left {
    double seconds, operations;
  };
  Left left() const;

  Interpreter& interpreter_;
  int64_t iterations_;
  Left after_first_{};
};

}  // namespace janus::frontend
