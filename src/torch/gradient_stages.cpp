#include "torch/gradient_stages.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>

#include "passes/gradient/reachable.h"
#include "passes/reach/gradient_edges.h"
#include "passes/reach/reachability.h"

namespace janus::torch {

namespace {

/// The stage at that level whose gradients share nodes with these, of several made one.
Stage& stage_at(std::vector<std::vector<Stage>>& levels, size_t level,
                const std::set<const graph::Node*>& nodes) {
  if (levels.size() <= level) levels.resize(level + 1);
  std::vector<Stage>& stages = levels[level];
  const auto is_apart = [&](const Stage& stage) {
    return std::ranges::none_of(nodes,
                                [&](const auto* node) { return stage.nodes.contains(node); });
  };
  const auto [first, last] = std::ranges::stable_partition(stages, is_apart);
  Stage joined;
  joined.nodes = nodes;
  for (auto each = first; each != last; ++each) {
    joined.results.insert(joined.results.end(), each->results.begin(), each->results.end());
    joined.cuts.insert(joined.cuts.end(), each->cuts.begin(), each->cuts.end());
    joined.nodes.merge(each->nodes);
  }
  stages.erase(first, last);
  return stages.emplace_back(std::move(joined));
}

/// The nodes that gradients of the value go through.
std::set<const graph::Node*> nodes_behind(graph::Value* value) {
  std::set<const graph::Node*> nodes;
  for (const graph::Value* each : passes::reached_from(std::span(&value, 1), passes::Paths::any))
    if (each->definition != nullptr && passes::passes_gradient(*each->definition))
      nodes.insert(each->definition);
  return nodes;
}

}  // namespace

std::vector<Stage> stages_of(const graph::Graph& graph,
                             const std::vector<GradientGraph::Result>& results) {
  std::vector<graph::Value*> values;
  for (const auto& result : results) values.push_back(graph.results()[result.index]);
  std::vector<std::vector<bool>> reaches;
  for (graph::Value* const value : values)
    reaches.push_back(passes::reachable(std::span(&value, 1), values));
  // In the order of their definitions those on the way come first.
  std::vector<size_t> order(results.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t r) { return values[r]->id; });
  std::vector<size_t> level(results.size());
  std::vector<std::vector<Stage>> levels;
  for (const size_t r : order) {
    std::vector<size_t> on_the_way;
    for (const size_t other : order)
      if (values[other] != values[r] && reaches[r][other] && values[other]->definition != nullptr)
        on_the_way.push_back(other);
    for (const size_t other : on_the_way) level[r] = std::max(level[r], level[other] + 1);
    Stage& stage = stage_at(levels, level[r], nodes_behind(values[r]));
    stage.results.push_back(results[r]);
    for (const size_t other : on_the_way)
      if (std::ranges::find(stage.cuts, results[other].index) == stage.cuts.end())
        stage.cuts.push_back(results[other].index);
  }
  std::vector<Stage> stages;
  for (std::vector<Stage>& each : levels) std::ranges::move(each, std::back_inserter(stages));
  return stages;
}

}  // namespace janus::torch
