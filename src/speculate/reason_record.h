// A record of the reasons that are made, for tests that ask which they have produced. Costs one
// load of a flag where a reason is made.
#pragma once

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "speculate/reason.h"

namespace janus::speculate {

/// From now on each reason that is made in this process is recorded, also one of which nobody
/// hears.
void record_reasons();
/// Each code and details recorded since the last call, once, sorted.
std::vector<std::pair<std::string, std::string>> take_recorded_reasons();

extern std::atomic<bool> is_recording_reasons;
void add_to_record(ReasonCode code, const std::string& details);

/// Where a reason is made.
inline void record(ReasonCode code, const std::string& details) {
  if (is_recording_reasons.load(std::memory_order_relaxed)) [[unlikely]]
    add_to_record(code, details);
}

}  // namespace janus::speculate
