// Partitions a block into units of nodes that run as one. Joining units makes no cycle of
// dependences.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/graph.h"
#include "passes/ordering/order.h"

namespace janus::passes {

class AcyclicPartition {
 public:
  explicit AcyclicPartition(const graph::Block& block);

  /// Divides nodes, given by position, into groups of independent nodes. A group has the nodes with
  /// equally many of the given nodes on the longest way to them.
  std::vector<std::vector<uint32_t>> independent(const std::vector<uint32_t>& positions);

  /// Makes one unit of independent nodes.
  void join(const std::vector<uint32_t>& positions);

  /// Orders the block so that nodes of one unit are neighbours.
  void put_in_order(graph::Block& block) const;

 private:
  void sort();

  const Predecessors before_;
  std::vector<uint32_t> unit_of_;  ///< by position: that of its unit's first node
  std::vector<uint64_t> priority_;
  Predecessors units_before_;
  std::vector<uint32_t> order_;  ///< of the units; empty: they changed since
};

}  // namespace janus::passes
