// The clock for durations.
#pragma once

#include <chrono>

namespace janus {

/// Seconds since some moment in the past. Monotonic.
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace janus
