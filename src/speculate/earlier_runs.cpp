#include "speculate/earlier_runs.h"

#include <utility>

namespace janus::speculate {
namespace {

std::map<RegionKey, EarlierRun>& recalled() {
  static auto* const runs = new std::map<RegionKey, EarlierRun>;
  return *runs;
}

}  // namespace

std::optional<EarlierRun> earlier_run(const RegionKey& key) {
  const auto found = recalled().find(key);
  if (found == recalled().end() || found->second.is_empty()) return std::nullopt;
  return found->second;
}

void recall(std::map<RegionKey, EarlierRun> runs) { recalled() = std::move(runs); }

}  // namespace janus::speculate
