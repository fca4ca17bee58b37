// Simplifies control flow: makes blocks smaller and branches and loops fewer.
//
// Does:       puts the side of an `if` that is known to be taken in its place; takes the value that
//             both sides, or every iteration, give from outside; computes in front of a loop or a
//             function what every iteration or call computes alike (loop_invariant_code_motion.h);
//             takes apart at once what was just packed.
// Requires:   no `gradient` nodes.
// Guarantees: the same values.
// Must not:   move what has effects; move anything out of a side that may not be taken. (What is
//             moved out of a loop without an iteration, or a function without a call, may fail: the
//             run is given up then, which is always right.)
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph simplify_control(graph::Graph graph);

}  // namespace janus::passes
