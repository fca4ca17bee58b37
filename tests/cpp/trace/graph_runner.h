// Runs a generated graph for one iteration of a program by the reference interpreter.
#pragma once

#include <string>

#include "random_program.h"
#include "trace/feeding.h"

namespace janus::trace {

/// What differs from what the program did: its operators in their order, the values that Python
/// looked at, and what cells hold. Empty if nothing does.
std::string compare(const TraceGraph& traces, const GeneratedGraph& generated,
                    const ProgramRun& run);

}  // namespace janus::trace
