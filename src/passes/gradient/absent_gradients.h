// Leaves out of a backward run what comes of gradients that do not come.
//
// A result may leave the graph without a gradient coming back to it. Zeros in its place are not the
// same: a slope may be infinite, and 0 times infinity is NaN, where eager computes nothing.
//
// Requires: a backward graph, whose values are linear in the gradients among its inputs.
// Guarantees: the same inputs and results; what only absent gradients lead to is zeros, and adds to
// no sum. Does not look into blocks: a node with blocks takes zeros.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace janus::passes {

/// The last inputs are the gradients of the results; `given`: which of them come.
graph::Graph without_absent_gradients(const graph::Graph& backward, const std::vector<bool>& given);

/// The same of gradients of which the run says which come: behind the inputs one more for each, a
/// b1[]. What does not come is taken for zeros, and what only that leads to is made zeros again.
graph::Graph with_absence_at_run_time(const graph::Graph& backward, size_t gradient_count);

}  // namespace janus::passes
