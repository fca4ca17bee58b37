// The clock that durations are taken from.
#pragma once

#include <chrono>

namespace janus {

/// Seconds since some moment in the past; never goes back.
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace janus
