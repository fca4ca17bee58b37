// A Region as it runs: what its statements do next, and what its graphs gave. The rewritten code
// asks (bind/region.cpp), and each call is about the frame that it comes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bind/region_state.h"
#include "bind/statement_results.h"

namespace janus::bind {

/// The statements are about to run: has them run as a graph if they can, or says what is to be
/// done. Throws python::ErrorSet.
Mode enter(RegionState& state);

/// The same for statement `index` of a region that is cut.
Mode ran(RegionState& state, size_t index);

/// Ends what enter() has begun: a run of the cut statements, or a profile run.
void leave(RegionState& state);

/// The results of the graph that ran last: the whole's, or a segment's.
StatementResults& current_given(RegionState& state);

/// The variables to set after statement `index`; -1: after all.
const std::vector<size_t>& variables_of(const RegionState& state, int64_t index);

/// Whether statement `index` was the last one of the graph; -1 stands for the whole.
bool is_last(RegionState& state, int64_t index);

}  // namespace janus::bind
