// Whether there is memory left: for what does not survive its absence.
#pragma once

#include <cstdint>

namespace janus {

/// Whether the system would give so many bytes of addresses at once. Other threads may take them
/// meanwhile.
bool has_free_memory(int64_t bytes);

}  // namespace janus
