// What it costs to have work done by several threads, found out by doing it.
#pragma once

#include <cstdint>
#include <optional>

namespace janus {

/// How many cycles longer than one piece it takes to hand a piece to each of the threads that a
/// loop may use, and to wait for all. Nothing where there is one thread only, or somebody else uses
/// the others. Takes about half a millisecond.
std::optional<double> cycles_of_handing_out();

}  // namespace janus
