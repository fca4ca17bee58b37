// Leaves whose requires_grad the run has switched.
#pragma once

#include <map>
#include <unordered_map>

#include "frontend/values/value.h"

namespace janus::frontend {

struct GradientSwitches {
  std::unordered_map<const graph::Value*, graph::Value*>
      counterparts;  ///< same contents, tracked or not
  /// The value of the other kind with the same contents; null if nothing was switched there.
  graph::Value* counterpart_or_null(const graph::Value* value) const {
    const auto found = counterparts.find(value);
    return found == counterparts.end() ? nullptr : found->second;
  }
  std::map<const Tensor*, bool> at_entry;  ///< tensors that were switched, and how they were found
};

}  // namespace janus::frontend
