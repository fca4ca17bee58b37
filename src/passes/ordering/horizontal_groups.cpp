// See horizontal_groups.h.
#include "passes/ordering/horizontal_groups.h"

#include "ops/rows.h"
#include "passes/ordering/acyclic_partition.h"

namespace janus::passes {

using graph::Block;
using graph::Node;

HorizontalGroups::HorizontalGroups(graph::Graph& graph,
                                   std::function<Candidates(const Block&)> look)
    : look_(std::move(look)) {
  gather(graph.body());
}

bool HorizontalGroups::meets(const Node& node,
                             const std::function<void(const NodeGroup&)>& replace) {
  const auto found = group_of_.find(&node);
  if (found == group_of_.end()) return false;
  Group& group = *found->second;
  if (++group.met == group.nodes.size()) replace(group.nodes);
  return true;
}

void HorizontalGroups::gather(Block& block) {
  for (const Node* node : block.nodes)
    if (node->op != &op::rows)
      for (const auto& nested : node->blocks) gather(*nested);
  const Candidates candidates = look_(block);
  if (candidates.sets.empty()) return;
  AcyclicPartition partition(block);
  for (const Positions& all : candidates.sets) {
    for (const Positions& positions : partition.independent(all)) {
      NodeGroup nodes;
      for (const uint32_t i : positions) nodes.push_back(block.nodes[i]);
      nodes = candidates.choose(std::move(nodes));
      if (nodes.size() < 2) continue;
      partition.join(positions);
      add(std::move(nodes));
    }
  }
  partition.put_in_order(block);
}

void HorizontalGroups::add(NodeGroup nodes) {
  Group& group = *groups_.emplace_back(std::make_unique<Group>(Group{std::move(nodes)}));
  for (const Node* node : group.nodes) group_of_.emplace(node, &group);
}

}  // namespace janus::passes
