// A record of all reasons, for tests that check which reasons they have produced. It costs one load
// of a flag where a reason is made.
#pragma once

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "speculate/reason.h"

namespace janus::speculate {

/// From now on each reason of this process is recorded, also one that is never reported.
void record_reasons();
/// The codes and details recorded since the last call, each once, sorted.
std::vector<std::pair<std::string, std::string>> take_recorded_reasons();

extern std::atomic<bool> is_recording_reasons;
void add_to_record(ReasonCode code, const std::string& details);

/// Called where a reason is made.
inline void record(ReasonCode code, const std::string& details) {
  if (is_recording_reasons.load(std::memory_order_relaxed)) [[unlikely]]
    add_to_record(code, details);
}

}  // namespace janus::speculate
