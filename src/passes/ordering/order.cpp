// See order.h.
#include "passes/ordering/order.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <unordered_map>

#include "base/check.h"
#include "graph/functions.h"
#include "graph/op.h"
#include "graph/run_time_symbols.h"
#include "ops/list.h"
#include "ops/python.h"
#include "passes/ordering/effects.h"
#include "passes/structure/captures.h"

namespace janus::passes {

using graph::Node;

namespace {

/// Whether the node, or what runs when it does, reads a clock.
bool reads_clock(const Node& node) {
  bool found = false;
  graph::for_each_run(node, [&](const Node& each) { found |= ops::reads_clock(each); });
  return found;
}

/// All nodes before a clock is read come before that, all behind it after.
void keep_around_clocks(const graph::Block& block, Predecessors& before) {
  uint32_t since = 0;
  bool any = false;  // there is a clock, at since - 1
  for (uint32_t i = 0; i < block.nodes.size(); ++i) {
    if (any) before[i].push_back(since - 1);
    if (!reads_clock(*block.nodes[i])) continue;
    for (uint32_t other = since; other < i; ++other) before[i].push_back(other);
    any = true;
    since = i + 1;
  }
}

/// The indices from outside that an `embedding`, be it in a kernel, looks at.
std::vector<const graph::Value*> embedded_indices(const Node& node) {
  if (node.op == &op::embedding) return {node.inputs[1]};
  if (node.op != &op::fused) return {};
  std::vector<const graph::Value*> indices;
  const graph::Block& block = *node.blocks.front();
  for (const Node* inner : block.nodes) {
    if (inner->op != &op::embedding) continue;
    const auto found = std::ranges::find(block.parameters, inner->inputs[1]);
    if (found == block.parameters.end()) continue;
    indices.push_back(node.inputs[static_cast<size_t>(found - block.parameters.begin())]);
  }
  return indices;
}

/// `embedding` looks whether its indices lie in the table; the operator of its gradient relies on
/// it.
void keep_behind_checks(const graph::Block& block,
                        const std::unordered_map<const Node*, uint32_t>& positions,
                        Predecessors& before) {
  std::unordered_map<const graph::Value*, uint32_t> checked;  // where, by indices
  for (const Node* node : block.nodes)
    for (const graph::Value* indices : embedded_indices(*node))
      checked.try_emplace(indices, positions.at(node));
  for (const Node* node : block.nodes) {
    if (node->op != &op::embedding_dense_backward) continue;
    const uint32_t position = positions.at(node);
    if (const auto found = checked.find(node->inputs[1]);
        found != checked.end() && found->second < position)
      before[position].push_back(found->second);
  }
}

}  // namespace

Predecessors predecessors(const graph::Block& block) {
  std::unordered_map<const Node*, uint32_t> positions;
  std::vector<std::optional<uint32_t>> last_with(kEffectCount);
  Predecessors result(block.nodes.size());
  for (uint32_t i = 0; i < block.nodes.size(); ++i) {
    const Node& node = *block.nodes[i];
    for (const graph::Value* operand : operands(node))
      if (const auto found = positions.find(operand->definition); found != positions.end())
        result[i].push_back(found->second);
    for (const Node* function : graph::functions_run_by(node))
      if (const auto found = positions.find(function); found != positions.end())
        result[i].push_back(found->second);
    for (const Effect effect : ordering_effects(node)) {
      auto& last = last_with[static_cast<size_t>(effect)];
      if (last.has_value()) result[i].push_back(*last);
      last = i;
    }
    positions.emplace(&node, i);
  }
  keep_behind_checks(block, positions, result);
  // What mentions a dimension comes after what gives it its value.
  for (uint32_t i = 0; i < block.nodes.size(); ++i) {
    const std::string symbol = graph::symbol_given_by(*block.nodes[i]);
    if (symbol.empty()) continue;
    for (uint32_t later = i + 1; later < block.nodes.size(); ++later)
      if (graph::mentions(*block.nodes[later], symbol)) result[later].push_back(i);
  }
  keep_around_clocks(block, result);
  return result;
}

std::vector<std::vector<uint32_t>> successors(const Predecessors& predecessors) {
  std::vector<std::vector<uint32_t>> result(predecessors.size());
  for (uint32_t i = 0; i < predecessors.size(); ++i)
    for (const uint32_t before : predecessors[i]) result[before].push_back(i);
  return result;
}

std::vector<uint32_t> sort_topologically(const Predecessors& predecessors,
                                         std::span<const uint64_t> priority) {
  const auto after = successors(predecessors);
  std::vector<size_t> waiting_for(predecessors.size());
  using Entry = std::pair<uint64_t, uint32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (uint32_t i = 0; i < predecessors.size(); ++i) {
    waiting_for[i] = predecessors[i].size();
    if (waiting_for[i] == 0) ready.emplace(priority[i], i);
  }
  std::vector<uint32_t> order;
  order.reserve(predecessors.size());
  while (!ready.empty()) {
    const uint32_t next = ready.top().second;
    ready.pop();
    order.push_back(next);
    for (const uint32_t i : after[next])
      if (--waiting_for[i] == 0) ready.emplace(priority[i], i);
  }
  TORCHJANUS_CHECK(order.size() == predecessors.size(),
                   "order: ", predecessors.size() - order.size(), " of ", predecessors.size(),
                   " nodes wait for each other");
  return order;
}

std::vector<std::vector<Node*>> grouped(std::span<Node* const> nodes,
                                        const Predecessors& predecessors,
                                        std::span<const uint32_t> unit_of) {
  Predecessors units_before(nodes.size());
  std::vector<std::vector<Node*>> members(nodes.size());
  std::vector<uint64_t> priority(nodes.size());
  for (uint32_t i = 0; i < nodes.size(); ++i) {
    priority[i] = i;
    members[unit_of[i]].push_back(nodes[i]);
    for (const uint32_t other : predecessors[i])
      if (unit_of[other] != unit_of[i]) units_before[unit_of[i]].push_back(unit_of[other]);
  }
  std::vector<std::vector<Node*>> result;
  for (const uint32_t unit : sort_topologically(units_before, priority))
    if (!members[unit].empty()) result.push_back(std::move(members[unit]));
  return result;
}

}  // namespace janus::passes
