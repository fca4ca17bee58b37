// See acyclic_partition.h.
#include "passes/ordering/acyclic_partition.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace janus::passes {

using graph::Node;

AcyclicPartition::AcyclicPartition(const graph::Block& block)
    : before_(predecessors(block)), unit_of_(before_.size()), priority_(before_.size()) {
  std::iota(unit_of_.begin(), unit_of_.end(), 0);
  std::iota(priority_.begin(), priority_.end(), 0);
}

std::vector<std::vector<uint32_t>> AcyclicPartition::independent(
    const std::vector<uint32_t>& positions) {
  sort();
  std::vector<uint32_t> depth(before_.size()), counts(before_.size());
  for (const uint32_t i : positions) counts[i] = 1;
  for (const uint32_t unit : order_)
    for (const uint32_t other : units_before_[unit])
      depth[unit] = std::max(depth[unit], depth[other] + counts[other]);
  std::map<uint32_t, std::vector<uint32_t>> groups;
  for (const uint32_t i : positions) groups[depth[i]].push_back(i);
  std::vector<std::vector<uint32_t>> result;
  for (auto& [each, group] : groups) result.push_back(std::move(group));
  return result;
}

void AcyclicPartition::join(const std::vector<uint32_t>& positions) {
  for (const uint32_t i : positions) unit_of_[i] = positions.front();
  order_.clear();
}

void AcyclicPartition::put_in_order(graph::Block& block) const {
  const auto units = grouped(block.nodes, before_, unit_of_);
  block.nodes.clear();
  for (const std::vector<Node*>& unit : units)
    block.nodes.insert(block.nodes.end(), unit.begin(), unit.end());
}

void AcyclicPartition::sort() {
  if (!order_.empty()) return;
  units_before_.assign(before_.size(), {});
  for (uint32_t i = 0; i < before_.size(); ++i)
    for (const uint32_t other : before_[i])
      if (unit_of_[other] != unit_of_[i]) units_before_[unit_of_[i]].push_back(unit_of_[other]);
  order_ = sort_topologically(units_before_, priority_);
}

}  // namespace janus::passes
