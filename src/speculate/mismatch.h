// Why the guards of a graph did not hold for a call.
#pragma once

#include <string>

#include "speculate/reason.h"

namespace janus::speculate {

struct Mismatch {
  Reason reason;
  std::string path;  ///< Source::describe() of the object that differed; empty: the call as a whole
  bool dead = false;  ///< an object that had to be found is gone for good
  /// What was computed of the call's numbers and had to be one value, such as `step%4`; else empty.
  std::string formula = {};
};

}  // namespace janus::speculate
