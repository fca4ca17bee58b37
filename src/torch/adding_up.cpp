#include "torch/adding_up.h"

#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace janus::torch {

namespace autograd = ::torch::autograd;
using autograd::Edge;

namespace {

using Nodes = std::unordered_set<const MayGoApart*>;

Nodes find_all_that_add_up(const std::unordered_set<autograd::Node*>& nodes) {
  std::unordered_map<const autograd::Node*, std::vector<const MayGoApart*>> by_cut;
  std::unordered_set<const autograd::Node*> due;
  Nodes found;
  std::vector<const autograd::Node*> pending;
  const auto reach = [&](const Edge& edge) {
    const autograd::Node* const to = edge.function.get();
    if (to != nullptr && due.insert(to).second) pending.push_back(to);
  };
  for (const autograd::Node* node : nodes) {
    const auto* const own = dynamic_cast<const MayGoApart*>(node);
    if (own == nullptr)
      std::ranges::for_each(node->next_edges(), reach);
    else
      for (const Edge& cut : own->cuts()) by_cut[cut.function.get()].push_back(own);
  }
  while (!pending.empty()) {
    const auto waiting = by_cut.find(pending.back());
    pending.pop_back();
    if (waiting == by_cut.end()) continue;
    for (const MayGoApart* node : waiting->second)
      if (found.insert(node).second) std::ranges::for_each(node->cuts(), reach);
  }
  return found;
}

/// Of the nodes of the backward() at hand; found out once for each backward() of a thread.
const Nodes& all_that_add_up(const std::unordered_set<autograd::Node*>& nodes) {
  thread_local std::pair<int, Nodes> latest{-1, {}};
  const int task = autograd::get_current_graph_task_id();
  if (latest.first != task) latest = {task, find_all_that_add_up(nodes)};
  return latest.second;
}

}  // namespace

bool adds_up(const MayGoApart& node) {
  const auto* const nodes = autograd::get_current_graph_task_nodes_in_graph();
  return nodes != nullptr && all_that_add_up(*nodes).contains(&node);
}

}  // namespace janus::torch
