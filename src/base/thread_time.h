// Processor time of the calling thread, which other processes hardly affect.
#pragma once

namespace janus {

double thread_seconds();

}  // namespace janus
