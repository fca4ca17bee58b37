// The switch of collectives in graphs.
#pragma once

#include "base/options.h"

namespace janus {

/// It stands beside kSwitches, as a step is several graphs where it is off.
inline constexpr Switch kCollectivesSwitch{
    "collectives",
    "steps with DistributedDataParallel are one graph with its all-reduces; off: cut around them"};

}  // namespace janus
