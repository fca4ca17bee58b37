// The property that fuzz_passes and fuzz_control check.
#pragma once

#include "graph/graph.h"

/// Runs every pass on the graph, after those that all others need (composites and gradients are
/// gone then), and ends the process if one of them breaks it or changes what it computes. Graphs
/// with loops and functions are computed only if the caller knows that they end.
void check_passes(const janus::graph::Graph& graph, bool with_loops);
