// Numbers of the graph as formulas that a reader of the program understands.
#pragma once

#include <string>

#include "graph/graph.h"

namespace janus::frontend {

/// "start + 8 <= 100"; what has no name is "…".
std::string formula(const graph::Value& number);

}  // namespace janus::frontend
