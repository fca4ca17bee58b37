// Horizontal groups: independent nodes of a block that a pass replaces by one operator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace janus::passes {

using NodeGroup = std::vector<graph::Node*>;

/// Positions of nodes of a block.
using Positions = std::vector<uint32_t>;

/// What a pass finds in a block.
struct Candidates {
  std::vector<Positions> sets;  ///< of nodes that may be done together
  /// Chooses among independent nodes of a set, and orders them as the pass wants. Empty: the pass
  /// leaves them alone.
  std::function<NodeGroup(NodeGroup)> choose;
};

/// The sets with more than one node, in the order of the block.
template <class Key>
std::vector<Positions> sets_of_several(std::map<Key, Positions> by_key);

class HorizontalGroups {
 public:
  /// Puts the blocks of the graph in an order in which the members of each group stand side by
  /// side.
  HorizontalGroups(graph::Graph& graph, std::function<Candidates(const graph::Block&)> look);

  /// Called for each node of the graph in order: whether it is in a group. At the last node of a
  /// group, calls `replace`, which replaces all of them.
  bool meets(const graph::Node& node, const std::function<void(const NodeGroup&)>& replace);

 private:
  struct Group {
    NodeGroup nodes;
    size_t met = 0;
  };
  void gather(graph::Block& block);
  void add(NodeGroup nodes);

  std::function<Candidates(const graph::Block&)> look_;
  std::vector<std::unique_ptr<Group>> groups_;
  std::unordered_map<const graph::Node*, Group*> group_of_;
};

template <class Key>
std::vector<Positions> sets_of_several(std::map<Key, Positions> by_key) {
  std::vector<Positions> sets;
  for (auto& [key, positions] : by_key)
    if (positions.size() > 1) sets.push_back(std::move(positions));
  std::ranges::sort(sets);  // not by where things happen to be in memory
  return sets;
}

}  // namespace janus::passes
