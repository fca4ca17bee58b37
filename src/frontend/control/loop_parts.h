// What a loop does, as functions that interpret it in the state at hand.
#pragma once

#include <functional>

#include "frontend/core/interpreter.h"
#include "frontend/values/truth.h"

namespace janus::frontend {

/// What a loop does, as functions that interpret it at the state at hand.
struct LoopParts {
  std::function<Truth()> test;            ///< whether another iteration begins
  std::function<Completion()> iteration;  ///< one iteration; `break` and `continue` end it
  /// How many iterations there are, unless one of them leaves the loop; null: only the run knows.
  std::function<Value()> iterations;
  bool may_be_empty = false;  ///< nothing is assumed of the first iteration
  bool is_rest = false;       ///< the first iteration came in front of it
};

}  // namespace janus::frontend
