#include "trace/slots.h"

#include <algorithm>

namespace janus::trace {

SlotUses::SlotUses(const Nodes& nodes)
    : nodes_(nodes), executed_(nodes.nodes.size()), certain_(nodes.nodes.size()) {
  for (LevelId level = 0; level < nodes.levels.size(); ++level) orders_.emplace_back(nodes, level);
  visit_level(0, Given::always);
  for (const Slot& slot : nodes.slots) {
    const Input& input = nodes.nodes[slot.node].inputs[slot.input];
    early_.push_back(input.sources.size() > 1);
    Given given = executed_[slot.node];
    if (early_.back())
      given = certain_[slot.node] && is_first(input, slot.node) ? Given::always : Given::perhaps;
    given_.push_back(given);
  }
}

void SlotUses::visit_level(LevelId level, Given around) {
  const NodeId loop = nodes_.levels[level].loop;
  const bool is_certain = loop == kNone || certain_[loop];
  for (const NodeId id : nodes_.levels[level].nodes) {
    const bool on_all_paths = orders_[level].is_dominated(kEnd, id);
    certain_[id] = is_certain && on_all_paths;
    executed_[id] = around == Given::always && !on_all_paths ? Given::perhaps : around;
    const Node& node = nodes_.nodes[id];
    if (node.is_loop())
      visit_level(node.body, node.fixed_trips == 1 ? executed_[id] : Given::repeatedly);
  }
}

/// Whether no other source of the input can come before the node is executed.
bool SlotUses::is_first(const Input& input, NodeId node) const {
  const LevelId level = nodes_.nodes[node].level;
  return std::all_of(input.sources.begin(), input.sources.end(), [&](const Source& source) {
    if (source.is_early()) return true;
    const NodeId other = around(source.node, level);
    return other != kNone && orders_[level].is_dominated(other, node);
  });
}

/// The node itself, or the loop around it, that stands in a level.
NodeId SlotUses::around(NodeId node, LevelId level) const {
  while (node != kNone && nodes_.nodes[node].level != level)
    node = nodes_.levels[nodes_.nodes[node].level].loop;
  return node;
}

}  // namespace janus::trace
