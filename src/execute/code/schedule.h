// Instruction scheduling: the order in which the nodes of a graph's body are executed.
//
// Guards, and what they need, come first; then everything in program order; last the native kernels
// whose results become the contents of cells, with what depends on them. Nothing in that last part
// can fail, so such kernels may write into the cells' own memory.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace janus::execute {

struct Schedule {
  std::vector<const graph::Node*> order;   ///< all but commit and rebind
  size_t tail = 0;                         ///< index in `order` of the first node that may write
  std::vector<const graph::Node*> writes;  ///< commit and rebind nodes in program order
};

Schedule make_schedule(const graph::Block& body);

/// Values that a node uses: its inputs and what its blocks, and the functions that it runs, take
/// from outside.
std::vector<const graph::Value*> used_values(const graph::Node& node);

/// Whether it takes numbers from the random generator.
bool draws(const graph::Node& node);

}  // namespace janus::execute
