// See batch.h.
#include "passes/batching/batch.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "graph/functions.h"
#include "graph/op.h"
#include "ops/list.h"
#include "passes/batching/batch_partition.h"
#include "passes/batching/flow.h"
#include "passes/batching/outlining.h"
#include "passes/batching/parallel_loops.h"
#include "passes/batching/recursion.h"
#include "passes/batching/rows_maker.h"
#include "passes/cleanup/code_sinking.h"
#include "passes/structure/captures.h"
#include "passes/structure/copied.h"
#include "passes/structure/renew.h"

namespace janus::passes {
namespace {

using graph::Block;
using graph::body_of;
using graph::Dim;
using graph::Graph;
using graph::Node;
using graph::Trait;
using graph::Value;

/// Edits a pass's own copy of a graph.
class Batcher {
 public:
  Batcher(Graph& graph, Recursion& recursion, std::map<std::string, int64_t>& kinds)
      : graph_(graph), recursion_(recursion), kinds_(kinds) {}

  void run() {
    const Flow flow(recursion_.functions,
                    [&](const Node& node) { return recursion_.is_put_off(node); });
    for (Node* function : recursion_.functions) divide(body_of(*function), flow);
    find_ranks(flow);
    for (const auto& [block, units] : divided_) make_rows(*block, units);
    for (Node* function : recursion_.functions) renew(body_of(*function), now_);
  }

 private:
  using Unit = std::vector<Node*>;
  bool is_put_off(const Unit& unit) const { return recursion_.is_put_off(*unit.front()); }

  void divide(Block& block, const Flow& flow) {
    for (Node* node : block.nodes)
      for (const auto& nested : node->blocks)
        if (Recursion::is_divided(*nested)) divide(*nested, flow);
    divided_.emplace_back(&block, batch_partition(block, recursion_, flow));
  }

  void find_ranks(const Flow& flow) {
    std::vector<Unit> all;
    for (const auto& [block, units] : divided_)
      std::ranges::copy_if(units, std::back_inserter(all),
                           [&](const Unit& unit) { return is_put_off(unit); });
    const std::vector<uint32_t> ranks = flow.ranks(all);
    for (size_t i = 0; i < all.size(); ++i) rank_[all[i].front()] = ranks[i];
  }

  void make_rows(Block& block, const std::vector<Unit>& units) {
    std::unordered_map<const Value*, const Unit*> user;  // null: several
    const auto use = [&](const Value* value, const Unit* unit) {
      const auto [found, is_new] = user.try_emplace(value, unit);
      if (!is_new && found->second != unit) found->second = nullptr;
    };
    for (const Unit& unit : units)
      for (const Node* node : unit)
        for (const Value* operand : operands(*node)) use(operand, &unit);
    for (const Value* result : block.results) use(result, nullptr);
    block.nodes.clear();
    for (const Unit& unit : units) {
      if (!is_put_off(unit)) {
        block.nodes.push_back(unit.front());
        continue;
      }
      Node* rows = passes::make_rows(
          graph_, recursion_, block, unit,
          [&](const Value* value) {
            const auto found = user.find(value);
            return found != user.end() && found->second != &unit;
          },
          now_);
      rows->attributes.set("rank", int64_t{rank_.at(unit.front())});
      const auto kind = static_cast<int64_t>(kinds_.size());
      rows->attributes.set("kind",
                           kinds_.try_emplace(description_of_rows(*rows), kind).first->second);
    }
  }

  Graph& graph_;
  Recursion& recursion_;
  std::map<std::string, int64_t>& kinds_;
  std::vector<std::pair<Block*, std::vector<Unit>>> divided_;
  std::unordered_map<const Node*, uint32_t> rank_;  ///< by a unit's first node
  Renewed now_;
};

std::string unused_symbol(const Graph& graph) {
  std::unordered_set<std::string> taken;
  const auto take = [&](const graph::Type& type) {
    for (const Dim& dim : type.shape)
      for (const std::string& name : dim.symbols()) taken.insert(name);
  };
  for (const Value* input : graph.inputs()) take(input->type);
  graph::for_each_node(graph.body(), [&](const Node& node) {
    for (const Value* output : node.outputs) take(output->type);
  });
  std::string name = "rows";
  while (taken.contains(name)) name += "_";
  return name;
}

std::vector<Node*> recursive_functions(const Graph& graph) {
  std::vector<Node*> recursive;
  for (Node* node : graph.body().nodes) {
    if (node->op != &op::function) continue;
    const std::vector<Node*> run = graph::functions_run_by(body_of(*node));
    if (std::ranges::find(run, node) != run.end()) recursive.push_back(node);
  }
  return recursive;
}

bool is_transposition(const Node& node) {
  if (node.op != &op::t && node.op != &op::transpose && node.op != &op::permute) return false;
  return std::ranges::count_if(node.output()->type.shape,
                               [](const Dim& dim) { return !dim.is(1); }) > 1;
}

bool shows_transposed(const Node& function) {
  std::unordered_set<const Value*> transposed;
  bool shown = false;
  const auto look = [&](const Value* value) { shown |= transposed.contains(value); };
  graph::for_each_node(body_of(function), [&](const Node& node) {
    if (is_transposition(node)) transposed.insert(node.output());
  });
  graph::for_each_node(body_of(function), [&](const Node& node) {
    if (!node.op->is(Trait::product)) std::ranges::for_each(node.inputs, look);
    for (const auto& block : node.blocks) std::ranges::for_each(block->results, look);
  });
  std::ranges::for_each(body_of(function).results, look);
  return shown;
}

/// Whether something but a product reads what one of the functions transposes. Rows lie in order,
/// and programs see the strides of what is computed of transposed tensors.
bool show_transposed(const std::vector<Node*>& functions) {
  return std::ranges::any_of(functions, [](const Node* each) { return shows_transposed(*each); });
}

/// What of a graph's body is to be computed together.
enum class Seeds { calls, loops };

std::vector<Node*> functions_around(Graph& graph, Seeds seeds) {
  if (seeds == Seeds::calls) {
    const std::vector<Node*> functions = recursive_functions(graph);
    return outline(graph, 2, [&](const Node& node) {
      return node.op == &op::call && std::ranges::count(functions, graph::callee(node)) > 0;
    });
  }
  const std::unordered_set<const Node*> loops = parallel_loops(graph.body());
  return outline(graph, 1, [&](const Node& node) { return loops.contains(&node); });
}

/// The graph with everything between such nodes of its body put off; nothing if there are few, or
/// it is not possible.
std::optional<Graph> batch_together(const graph::Graph& graph, Seeds seeds,
                                    const std::string& symbol) {
  if (seeds == Seeds::loops && parallel_loops(graph.body()).empty()) return std::nullopt;
  Graph result = copied(graph);
  const std::vector<Node*> together = functions_around(result, seeds);
  std::vector<Node*> functions = together;
  for (const Node* function : together)
    for (Node* run : graph::functions_run_by(body_of(*function)))
      if (std::ranges::find(functions, run) == functions.end()) functions.push_back(run);
  if (functions.empty()) return std::nullopt;
  for (Node* function : functions) sink_code(result, body_of(*function));
  Recursion recursion(std::move(functions), together, result.body(), Dim::symbol(symbol));
  if (seeds == Seeds::loops && show_transposed(together)) return std::nullopt;
  if (!recursion.can_put_off()) return std::nullopt;
  std::map<std::string, int64_t> kinds;
  Batcher(result, recursion, kinds).run();
  return copied(result);
}

}  // namespace

graph::Graph batch(graph::Graph graph) {
  const std::vector<Node*> recursive = recursive_functions(graph);
  const std::string symbol = unused_symbol(graph);
  if (recursive.empty()) {
    auto together = batch_together(graph, Seeds::loops, symbol);
    return together ? std::move(*together) : std::move(graph);
  }
  if (show_transposed(recursive)) return graph;
  std::unordered_set<const Node*> done;
  if (auto together = batch_together(graph, Seeds::calls, symbol)) return std::move(*together);
  std::map<std::string, int64_t> kinds;
  for (Node* function : recursive) {
    if (done.contains(function)) continue;
    const std::vector<Node*> functions = graph::functions_run_by(body_of(*function));
    for (Node* each : functions) sink_code(graph, body_of(*each));
    Recursion recursion(functions, {}, graph.body(), Dim::symbol(symbol));
    const bool fresh =
        std::ranges::none_of(functions, [&](const Node* each) { return done.contains(each); });
    if (!fresh || !recursion.can_put_off()) continue;
    Batcher(graph, recursion, kinds).run();
    done.insert(functions.begin(), functions.end());
  }
  return copied(graph);
}

}  // namespace janus::passes
