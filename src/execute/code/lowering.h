// Lowers a graph to code: gives every value its slot, orders the body (schedule.h), chooses for
// each node what executes it, and marks where slots are used last.
#pragma once

#include <span>

#include "execute/code/code.h"
#include "execute/code/shown_result.h"
#include "graph/graph.h"

namespace janus::execute {

/// `shown`: the results of which the program sees the strides.
Code make_code(const graph::Graph& graph, std::span<const ShownResult> shown = {});

}  // namespace janus::execute
