// Schedules the nodes of the graph: guards first, then what frees memory, writes last.
//
// Does:       first the guards and what they need, so that a run that fails fails early and what
//             follows may write into old memory; commits and rebinds last; in between, whatever
//             frees at least the memory that it takes as soon as it can run, all else in program
//             order. Where processes communicate, all that may end the run comes before that;
//             buckets are sent as soon as they are there, and waited for when nothing else is left
//             to do, all of them before the first is used.
// Requires:   nothing; best after `fuse`.
// Guarantees: the same nodes.
// Must not:   change the order of nodes with the same effect.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph schedule(graph::Graph graph);

}  // namespace janus::passes
