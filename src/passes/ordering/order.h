// Dependences between the nodes of one block: what must come before what, and orders that respect
// it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace janus::passes {

/// For each node of a block, by position, the positions of the nodes that must come before it:
/// those that define its operands (and what its blocks use from outside), the previous node with
/// the same effect, and all that a clock keeps on its side. May hold a position twice.
using Predecessors = std::vector<std::vector<uint32_t>>;
Predecessors predecessors(const graph::Block& block);

/// The inverse relation.
std::vector<std::vector<uint32_t>> successors(const Predecessors& predecessors);

/// A topological order in which, of all that could come next, the smallest `priority` does.
/// InternalError if there is a cycle.
std::vector<uint32_t> sort_topologically(const Predecessors& predecessors,
                                         std::span<const uint64_t> priority);

/// Nodes of a block as units, in an order in which each unit can follow the others. `unit_of`: by
/// position, that of the unit's first node.
std::vector<std::vector<graph::Node*>> grouped(std::span<graph::Node* const> nodes,
                                               const Predecessors& predecessors,
                                               std::span<const uint32_t> unit_of);

}  // namespace janus::passes
