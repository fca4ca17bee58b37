// Whether memory is left, for libraries that end the process where they get none.
#pragma once

#include <cstdint>

namespace janus {

/// Whether the system would map so many bytes at once now. Other threads may take them meanwhile.
bool has_free_memory(int64_t bytes);

}  // namespace janus
