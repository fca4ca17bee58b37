// How long the collectives of a program's runs keep it waiting, for reports.
#pragma once

#include <cstddef>
#include <span>

#include "execute/plan/plan_picture.h"

namespace janus::execute {

class Program;

/// Of a run, by the runs that were timed.
struct ExchangeTimes {
  size_t collectives = 0;
  double overlapped = 0;  ///< seconds of what was computed while some collective was on its way
  double exposed = 0;     ///< seconds in which it waited for one
};

/// `run`: the nodes that were timed, in the order in which they ran.
ExchangeTimes exchange_times(std::span<const TimedNode> run);
/// Of what Program::compile gave; all 0 if no run was timed.
ExchangeTimes exchange_times(const Program& program);

}  // namespace janus::execute
