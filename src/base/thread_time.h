// Processor time of the calling thread: what other processes do hardly matters to it.
#pragma once

namespace janus {

double thread_seconds();

}  // namespace janus
