// The five debug switches, read once from the environment, and the logger that the first one
// steers.
//
//   TORCHJANUS_LOG=speculate:2,pass        channels to print to stderr, with an optional level
//   TORCHJANUS_DUMP=DIR                     numbered files of every stage that changed: 03-fuse.ir
//   TORCHJANUS_DISABLE=fuse,merge_common    passes, kinds of speculation and execution to leave out
//   TORCHJANUS_STOP_AFTER=N                 run only the first N passes: bisect a miscompile
//   TORCHJANUS_STRICT=1                     fallbacks and internal errors are raised
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/policy.h"

namespace janus {

/// An optimisation that can be switched off by name, as each pass can: to measure what it brings.
/// The switch counts for graphs that are made from then on.
struct Switch {
  std::string_view name, meaning;
};
inline constexpr Switch kSwitches[] = {
    {"unroll", "loops with the same iterations in all runs are unrolled; off: loops in the graph"},
    {"specialise_shapes",
     "sizes are constants until they vary; off: sizes of arguments are symbolic"},
    {"specialise_numbers",
     "Python's numbers are constants until they vary; off: floats and arguments are inputs"},
    {"specialise_branches",
     "tests that went one way are followed; off: both sides are in the graph"},
    {"control_flow",
     "branches and loops that vary are in the graph; off: a graph for each way through them"},
    {"kernels", "element-wise operators are compiled; off: each is a call of ATen's"},
    {"reductions", "reductions are compiled as well; off: only element-wise operators"},
    {"kernel_cache", "compiled kernels are kept on disk for the next process"},
    {"layouts", "images are kept channels last between convolutions"},
    {"memory_plan", "results lie in memory planned ahead; off: each is allocated by itself"},
    {"parallel", "kernels use several threads, small products run side by side"},
    {"inline_cache", "guards have an inline cache; off: every access path is walked"}};

struct Options {
  std::map<std::string, int, std::less<>> log_levels;
  std::string dump_folder;
  std::set<std::string, std::less<>> disabled;
  std::optional<int> stop_after;
  bool strict = false;
  /// Limits of one graph. A function that exceeds one is refused.
  int64_t most_rounds = policy::kMostRounds;            ///< iterations of an unrolled loop
  int64_t deepest_inlining = policy::kDeepestInlining;  ///< nested calls
  int64_t most_operations = policy::kMostOperations;    ///< of a graph

  bool is_disabled(std::string_view name) const { return disabled.contains(name); }
};

/// All channels of the log.
inline constexpr std::string_view kLogChannels[] = {"merge",     "pass", "profile",
                                                    "speculate", "time", "verify"};

/// Whether work may be spread over threads; asked at each piece of work.
bool is_parallel();
/// Replaces the set of names that are switched off.
void set_disabled(std::set<std::string, std::less<>> names);

/// The process's options; filled from the environment at first use. Tests may change them.
Options& options();

/// Whether `channel` is switched on at `level` (1 is the coarsest).
bool log_enabled(std::string_view channel, int level = 1);

/// Prints `[channel] message` to stderr if the channel is on at that level.
void log(std::string_view channel, const std::string& message, int level = 1);

/// Writes the next numbered file into the dump folder, if there is one: `dump("fuse.ir", text)`.
void dump(std::string_view name, std::string_view text);

}  // namespace janus
