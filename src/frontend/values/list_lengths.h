// Whether two lists of the graph surely have the same number of elements: those to which a loop or
// recursion appends side by side.
#pragma once

#include "graph/graph.h"

namespace janus::frontend {

bool have_one_length(const graph::Value* a, const graph::Value* b);

}  // namespace janus::frontend
