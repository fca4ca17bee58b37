// Which paths of a gradient count, and the set of values that it reaches.
#pragma once

#include <unordered_set>

#include "graph/graph.h"

namespace janus::passes {

/// Those through any side of an `if` and any number of iterations of a loop (may), or only those
/// that are there however the run goes (must). What a gradient comes to for certain has one in
/// eager as well; the others may have None there. `certain_but_for_lists`: only those of the latter
/// that no element of a list lies on.
enum class Paths { any, certain, certain_but_for_lists };

using Reached = std::unordered_set<graph::Value*>;

}  // namespace janus::passes
