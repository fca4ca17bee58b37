// The overhead of a parallel loop on this machine, measured.
#pragma once

#include <cstdint>
#include <optional>

namespace janus {

/// Cycles that a parallel loop over one piece for each thread takes beyond one piece: to start all
/// threads and to wait for them. nullopt where there is one thread only, or another thread uses
/// the team. Takes about half a millisecond.
std::optional<double> parallel_overhead_cycles();

}  // namespace janus
