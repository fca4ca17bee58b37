// Why the guards of a graph failed for a call.
#pragma once

#include <string>

#include "speculate/reason.h"

namespace janus::speculate {

struct Mismatch {
  Reason reason;
  std::string path;  ///< Source::describe() of the object that differed; empty: the call as a whole
  bool dead = false;  ///< an object that the graph needs is dead
  /// The formula over the call's numbers whose value was assumed, such as `step%4`; else empty.
  std::string formula = {};
};

}  // namespace janus::speculate
