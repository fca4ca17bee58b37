// What a loop does, as functions that interpret it in the state at hand.
#pragma once

#include <functional>

#include "frontend/core/interpreter.h"
#include "frontend/values/truth.h"

namespace janus::frontend {

/// What a loop does, as functions that interpret it at the state at hand.
struct LoopParts {
  std::function<Truth()> test;        ///< whether another round begins
  std::function<Completion()> round;  ///< one round; `break` and `continue` end it
  /// How many rounds there are, unless one of them leaves the loop; null: only the run knows.
  std::function<Value()> rounds;
  bool may_be_empty = false;  ///< nothing is assumed of the first round
  bool is_rest = false;       ///< the first round came in front of it
};

}  // namespace janus::frontend
