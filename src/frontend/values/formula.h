// Numbers of the graph as formulas that a reader of the program understands.
#pragma once

#include <string>

#include "graph/graph.h"

namespace janus::frontend {

/// "start + 8 <= 100"; what has no name is "…".
std::string formula(const graph::Value& number);

/// Whether the number has to do with a remainder of a varying int: `step % 20`.
bool is_of_remainder(const graph::Dim& number);
/// Whether a varying int of the program is part of it.
bool has_varying_int(const graph::Dim& number);

}  // namespace janus::frontend
