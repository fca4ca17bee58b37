// See joint.h.
#include "passes/ordering/joint.h"

#include "ops/rows.h"
#include "passes/ordering/units.h"

namespace janus::passes {

using graph::Block;
using graph::Node;

JointGroups::JointGroups(graph::Graph& graph, std::function<Alike(const Block&)> look)
    : look_(std::move(look)) {
  gather(graph.body());
}

bool JointGroups::meets(const Node& node, const std::function<void(const JointNodes&)>& replace) {
  const auto found = group_of_.find(&node);
  if (found == group_of_.end()) return false;
  Group& group = *found->second;
  if (++group.met == group.nodes.size()) replace(group.nodes);
  return true;
}

void JointGroups::gather(Block& block) {
  for (const Node* node : block.nodes)
    if (node->op != &op::rows)
      for (const auto& nested : node->blocks) gather(*nested);
  const Alike alike = look_(block);
  if (alike.sets.empty()) return;
  Units units(block);
  for (const Positions& all : alike.sets) {
    for (const Positions& positions : units.independent(all)) {
      JointNodes nodes;
      for (const uint32_t i : positions) nodes.push_back(block.nodes[i]);
      nodes = alike.choose(std::move(nodes));
      if (nodes.size() < 2) continue;
      units.join(positions);
      add(std::move(nodes));
    }
  }
  units.put_in_order(block);
}

void JointGroups::add(JointNodes nodes) {
  Group& group = *groups_.emplace_back(std::make_unique<Group>(Group{std::move(nodes)}));
  for (const Node* node : group.nodes) group_of_.emplace(node, &group);
}

}  // namespace janus::passes
