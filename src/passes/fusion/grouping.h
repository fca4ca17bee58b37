// Which elementwise nodes, reductions and reads at other places of a block become one fused kernel.
//
// Nodes are put on levels. An edge from a node to a user of its result stays on the level if both
// can be fused, iterate over the same space and reduce, if they do, the same dimensions; any other
// edge, and any order of effects, goes up at least one; so do all edges to what is read at other
// places, which must be in memory (the indices at which it is read need not be). So two nodes of
// one level and space have nothing between them that is outside of their group: whatever is grouped
// on one level, no cycle can arise. Levels are found in one walk forward and improved in one walk
// backward.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "passes/fusion/can_fuse.h"

namespace janus::passes {

/// Positions in the block of the nodes of each group, in program order. Each position occurs at
/// most once; groups of one node are included.
using Groups = std::vector<std::vector<uint32_t>>;
Groups find_groups(const graph::Block& block, const CanFuse& can_fuse);

/// Whether it works on so few elements that ATen's call takes longer than what it does.
bool has_few_elements(const graph::Node& node);

/// Whether a kernel is faster than ATen where a read at other places stands alone.
bool reads_faster(const graph::Node& node);

}  // namespace janus::passes
