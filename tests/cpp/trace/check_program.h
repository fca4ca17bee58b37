// What has to hold for every program, however it was made.
#pragma once

#include "graph_runner.h"

namespace janus::trace {

struct ProgramCheck {
  std::string failure;          ///< with the program and its graphs; empty if all holds
  std::string refusal;          ///< why no graph was generated
  size_t loops = 0, joins = 0;  ///< nodes and inputs of the TraceGraph
  bool covers_more = false;     ///< than the traces that were merged
};

/// Merges some runs of the program. The TraceGraph covers them. The generated graph computes what
/// they computed, and what further runs did if a cursor follows them.
ProgramCheck check_program(RandomProgram& program, const Names& names);

}  // namespace janus::trace
