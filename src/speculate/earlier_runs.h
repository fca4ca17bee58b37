// What earlier runs of this program have found out about its regions: what converting each has cost
// and what its graphs have saved. `torchjanus run` keeps it on disk (torchjanus/history.py), so
// that the next run neither repeats a bet that was lost nor waits where one was won. It decides
// only when graphs are made, never what they compute. Guarded by the GIL.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace janus::speculate {

/// Which function or statements: these are found again if the lines above them did not change.
struct RegionKey {
  std::string name, file;
  int line = 0;
  auto operator<=>(const RegionKey&) const = default;
};

/// Milliseconds of processor time in one run of the program.
struct EarlierRun {
  double spent = 0;   ///< on converting it
  double saved = 0;   ///< by its graphs, without what was spent; negative: they were slower
  double passed = 0;  ///< since it was first called, whatever ran

  bool has_paid() const { return saved > spent; }
  /// Nothing was tried: the run says nothing.
  bool is_empty() const { return spent == 0; }
};

/// Nullopt: none that tried it.
std::optional<EarlierRun> earlier_run(const RegionKey& key);
/// Replaces all that is known.
void recall(std::map<RegionKey, EarlierRun> runs);

}  // namespace janus::speculate
