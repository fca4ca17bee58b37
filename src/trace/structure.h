// The nodes of a TraceGraph as a structured program: sequences, selections, loops.
//
// A level may join its paths anywhere. It is structured along its dominator tree: behind a node
// stand the cases that only it leads to, and then, in topological order, the nodes where paths
// join that the node dominates. A path that does not go through such a node jumps over it: each
// edge to a join notes where it leads, and what can be jumped over is conditional on that. So no
// code is duplicated, whatever the joins are. (Ramsey, "Beyond Relooper", ICFP 2022, has the same
// order, with exits from blocks for the jumps.)
#pragma once

#include <vector>

#include "trace/nodes.h"

namespace janus::trace {

struct Statement {
  enum class Kind : uint8_t {
    event,    ///< executes the node
    loop,     ///< blocks[0] at least once: as long as decisions say, or a fixed number of times
    select,   ///< blocks[k] if the next decision is k
    jump,     ///< notes that the path goes on at `node`
    landing,  ///< blocks[0] if the path goes on at `node`
  };
  Kind kind = Kind::event;
  NodeId node = kNone;  ///< of a select: that behind which it stands
  LevelId level = 0;
  std::vector<std::vector<Statement>> blocks;
};

using Statements = std::vector<Statement>;

/// The order of a level's nodes, and which of them are on all paths.
class LevelOrder {
 public:
  LevelOrder(const Nodes& nodes, LevelId level);

  /// kEntry first, kEnd last; a node behind all from which edges lead to it.
  const std::vector<NodeId>& order() const { return order_; }
  const std::vector<NodeId>& children(NodeId node) const;
  size_t parent_count(NodeId node) const { return parents_[position(node)].size(); }
  /// The joins whose immediate dominator is the node, in order.
  std::vector<NodeId> joins_behind(NodeId node) const;
  /// Whether each path to `node` goes through `by`.
  bool is_dominated(NodeId node, NodeId by) const;
  /// Whether each path from `node` to the end goes through `by`.
  bool is_postdominated(NodeId node, NodeId by) const;

 private:
  using Position = size_t;
  Position position(NodeId node) const { return positions_.at(node); }
  void sort();
  void find_dominators();

  const Nodes& nodes_;
  LevelId level_;
  std::vector<NodeId> order_;
  std::map<NodeId, Position> positions_;
  std::vector<std::vector<Position>> parents_;
  std::vector<Position> dominator_, postdominator_;  // the immediate ones
};

/// The whole iteration; nothing if blocks nest deeper than passes can go by recursion.
std::optional<Statements> structured(const Nodes& nodes);

}  // namespace janus::trace
