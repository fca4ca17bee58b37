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

  /// Some nodes, by position, in groups of which no member leads to another: by how many of the
  /// nodes are on the way to each at most.
  std::vector<std::vector<uint32_t>> independent(const std::vector<uint32_t>& positions);

  /// Makes one unit of nodes that do not lead to each other.
  void join(const std::vector<uint32_t>& positions);

  /// So that nodes of one unit are neighbours.
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
