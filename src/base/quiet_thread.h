// Threads of our own, of which the program notices nothing.
#pragma once

#include <cstdint>

namespace janus {

/// Starts a thread that nobody joins and that gets no signals, as those are for the program's own
/// threads. False if there are not `bytes` of memory for what it does, or no thread can be started.
bool start_quiet_thread(void (*run)(), int64_t bytes);

}  // namespace janus
