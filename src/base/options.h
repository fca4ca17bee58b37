// The five debug switches, read once from the environment, and the logger that the first one
// steers.
//
//   TORCHJANUS_LOG=speculate:2,pass        channels to print to stderr, with an optional level
//   TORCHJANUS_DUMP=DIR                     numbered files of every stage that changed: 03-fuse.ir
//   TORCHJANUS_DISABLE=fuse,merge_common    passes (or kernels) to leave out
//   TORCHJANUS_STOP_AFTER=N                 run only the first N passes: bisect a miscompile
//   TORCHJANUS_STRICT=1                     fallbacks and internal errors are raised
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace janus {

struct Options {
  std::map<std::string, int, std::less<>> log_levels;
  std::string dump_folder;
  std::set<std::string, std::less<>> disabled;
  std::optional<int> stop_after;
  bool strict = false;

  bool is_disabled(std::string_view pass) const { return disabled.contains(pass); }
};

/// The channels that exist.
inline constexpr std::string_view kLogChannels[] = {"merge",     "pass", "profile",
                                                    "speculate", "time", "verify"};

/// The process's options; filled from the environment at first use. Tests may change them.
Options& options();

/// Whether `channel` is switched on at `level` (1 is the coarsest).
bool log_enabled(std::string_view channel, int level = 1);

/// Prints `[channel] message` to stderr if the channel is on at that level.
void log(std::string_view channel, const std::string& message, int level = 1);

/// Writes the next numbered file into the dump folder, if there is one: `dump("fuse.ir", text)`.
void dump(std::string_view name, std::string_view text);

}  // namespace janus
