// Why a generation begins anew.
#pragma once

#include <string>

#include "frontend/values/value.h"

namespace janus::frontend {

/// Thrown to begin the generation anew, with this test followed instead of merged.
struct CannotMerge {
  TestKey test;
  std::string why;
  /// Of a loop whose first iteration finds something of another kind than later ones (a sum that
  /// begins as 0, a state that begins as None): that iteration may be taken in front of the loop
  /// instead.
  bool in_first_iteration = false;
  /// Of a branch whose sides give tensors that differ in a size: that may be left to the run
  /// instead.
  bool in_sizes = false;
};

}  // namespace janus::frontend
