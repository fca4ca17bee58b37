// Finds the entry points of a program while it runs.
//
// The loop of a program may lie in an installed package that calls the program's functions and
// modules: a trainer. Such a loop never ends, so it can't be converted, and rewriting whole
// packages would cost more than it brings. So calls of the main thread are watched, in short
// windows. The outermost functions that are called again and again, and work with tensors, are
// entry points: their code is replaced by that of a copy whose body is a region (cut_function.h).
// Where such a region stays in Python or is cut, entry points are looked for below it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/options.h"
#include "bind/watch_report.h"

namespace janus::bind {

/// Not among kSwitches: it changes no graph.
inline constexpr Switch kEntryPointsSwitch{
    "entry_points", "functions that packages call in their loops are found by watching"};

/// From now on the main thread is watched, until each caller has called `stop_watching`. Costs at
/// most policy::kShareOfWatching of the time. Not in children of a fork. False: it is switched off.
bool watch_for_entry_points();

/// Takes back a call of `watch_for_entry_points` that gave true. What was found stays as it is.
void stop_watching();

/// A function that an earlier run of the program has found.
struct ExpectedEntryPoint {
  std::string module, name, file;
  int line = 0;
};

/// Replaces their code as soon as they are defined, as if they had been found.
void expect_entry_points(std::vector<ExpectedEntryPoint> expected);

/// What was seen so far; nullopt: nobody watches.
std::optional<WatchReport> watch_report();

}  // namespace janus::bind
