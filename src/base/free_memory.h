// Whether there is memory left: for what does not survive its absence.
#pragma once

#include <cstdint>

namespace janus {

/// Whether the system would give so many bytes of addresses at once. Other threads may take them
/// meanwhile.
bool has_free_memory(int64_t bytes);

/// What a thread is given to begin with: its stack, and what libraries keep for each thread. Where
/// that is not to be had the system's libraries end the process.
inline constexpr int64_t kBytesOfThread = int64_t{16} << 20;

}  // namespace janus
