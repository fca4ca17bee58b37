// What it costs to have work done by several threads, found out by doing it.
#pragma once

#include <cstdint>
#include <optional>

namespace janus {

/// What each thread is given to do, in cycles of the processor. Where handing out takes as long,
/// the threads did not work at the same time: the machine is busy with something else.
inline constexpr int64_t kCyclesOfPiece = 1 << 15;

/// How many cycles longer than one piece it takes to hand a piece to each of the threads that a
/// loop may use, and to wait for all. Nothing where there is one thread only, or somebody else uses
/// the others. Takes about half a millisecond.
std::optional<double> cycles_of_handing_out();

}  // namespace janus
