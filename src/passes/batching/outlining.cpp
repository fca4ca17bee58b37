// See outlining.h.
#include "passes/batching/outlining.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "graph/builder.h"
#include "graph/constant.h"
#include "graph/functions.h"
#include "graph/op.h"
#include "graph/run_time_symbols.h"
#include "ops/list.h"
#include "passes/ordering/order.h"
#include "passes/structure/captures.h"
#include "passes/structure/renew.h"

namespace janus::passes {
namespace {

using graph::Block;
using graph::Builder;
using graph::Graph;
using graph::Node;
using graph::Trait;
using graph::Value;

/// What has to stand in a graph's body, or must not run many times.
bool is_bound(const Node& node) {
  const auto gives_size = [](const auto& block) {
    return !graph::symbols_given_in(*block).empty();
  };
  return node.op == &op::function || node.op == &op::dimension || node.op == &op::state ||
         node.op->is(Trait::writes_state) || std::ranges::any_of(node.blocks, gives_size);
}

class Outliner {
 public:
  explicit Outliner(Graph& graph)
      : graph_(graph), body_(graph.body()), before_(predecessors(graph.body())) {}

  std::vector<Node*> outline(size_t least, const std::function<bool(const Node&)>& is_seed) {
    find_regions(least, is_seed);
    const std::vector<std::vector<Node*>> units = in_order();
    body_.nodes.clear();
    std::vector<Node*> made;
    for (const std::vector<Node*>& unit : units) {
      if (!region_.contains(unit.front())) {
        body_.nodes.push_back(unit.front());
      } else {
        made.push_back(function_of(unit, units));
      }
    }
    for (const auto& [function, now] : now_) {
      for (Node* node : body_.nodes)
        if (node != function) renew(*node, now);
      for (Value*& result : body_.results) renew(result, now);
    }
    for (Node* function : made) add_in_place(*function->blocks.front());
    return made;
  }

 private:
  /// A region is what follows a seed and leads to one. What has to stay in the body ends it, and
  /// what follows is of the next.
  void find_regions(size_t least, const std::function<bool(const Node&)>& is_seed) {
    const size_t count = before_.size();
    std::vector<bool> is_one(count), follows(count), leads(count);
    std::vector<uint32_t> phase(count);
    std::map<uint32_t, size_t> seeds;
    for (uint32_t i = 0; i < count; ++i) {
      const Node& node = *body_.nodes[i];
      follows[i] = is_one[i] = is_seed(node);
      for (const uint32_t other : before_[i]) {
        if (follows[other]) follows[i] = true;
        const bool ends = follows[other] && is_bound(*body_.nodes[other]);
        phase[i] = std::max(phase[i], phase[other] + (ends ? 1 : 0));
      }
      if (is_one[i]) ++seeds[phase[i]];
    }
    put_off(phase);
    for (auto i = static_cast<uint32_t>(count); i-- > 0;) {
      leads[i] = leads[i] || is_one[i];
      if (!leads[i]) continue;
      for (const uint32_t other : before_[i]) leads[other] = true;
    }
    for (uint32_t i = 0; i < count; ++i)
      if (follows[i] && leads[i] && !is_bound(*body_.nodes[i]) && seeds[phase[i]] >= least)
        region_[body_.nodes[i]] = phase[i];
  }

  /// What only later phases use belongs to them.
  void put_off(std::vector<uint32_t>& phase) const {
    const auto after = successors(before_);
    for (auto i = static_cast<uint32_t>(phase.size()); i-- > 0;) {
      const Node& node = *body_.nodes[i];
      const bool moves = node.op->is(Trait::pure) && !node.op->is(Trait::random) &&
                         !node.op->is(Trait::may_fail) && node.blocks.empty() &&
                         !after[i].empty() && !is_bound(node);
      if (!moves || std::ranges::any_of(node.outputs, [&](const Value* output) {
            return std::ranges::count(body_.results, output) > 0;
          }))
        continue;
      uint32_t first = UINT32_MAX;
      for (const uint32_t user : after[i]) first = std::min(first, phase[user]);
      phase[i] = std::max(phase[i], first);
    }
  }

  /// The regions, and every other node, in an order in which each can follow the others.
  std::vector<std::vector<Node*>> in_order() const {
    std::map<uint32_t, uint32_t> first;
    std::vector<uint32_t> unit_of;
    for (uint32_t i = 0; i < before_.size(); ++i) {
      const auto region = region_.find(body_.nodes[i]);
      unit_of.push_back(
          region == region_.end() ? i : first.try_emplace(region->second, i).first->second);
    }
    return grouped(body_.nodes, before_, unit_of);
  }

  Node* function_of(const std::vector<Node*>& unit, const std::vector<std::vector<Node*>>& units) {
    Builder builder(graph_);
    Node* function = builder.append_unchecked(
        op::function, {},
        {{"name", graph::unused_function_name(body_, graph_.name() + ".together")},
         {"frames", int64_t{0}}},
        {});
    Block& block = function->add_block();
    std::unordered_set<const Value*> own;
    for (Node* node : unit) {
      node->parent = &block;
      own.insert(node->outputs.begin(), node->outputs.end());
    }
    block.nodes = unit;
    const auto give = [&](Value* value) {
      if (own.erase(value) > 0) block.results.push_back(value);
    };
    for (const std::vector<Node*>& other : units)
      if (&other != &unit)
        for (const Node* node : other)
          for (Value* operand : operands(*node)) give(operand);
    for (Value* result : body_.results) give(result);
    call(*function, block);
    return function;
  }

  void call(const Node& function, const Block& block) {
    std::vector<graph::Type> types;
    for (const Value* result : block.results) types.push_back(result->type);
    Builder builder(graph_);
    const Node* call = builder.append_unchecked(
        op::call, {}, {{"callee", graph::function_name(function)}}, std::move(types));
    Renewed& now = now_[&function];
    for (size_t i = 0; i < block.results.size(); ++i) {
      call->outputs[i]->name = block.results[i]->name;
      now[block.results[i]] = call->outputs[i];
    }
  }

  /// Sums of products and of rows, as backpropagate.cpp makes them in functions.
  static void add_in_place(Block& block) {
    std::unordered_map<const Value*, size_t> uses;
    for (const Node* node : block.nodes)
      for (const Value* operand : operands(*node)) ++uses[operand];
    for (const Value* result : block.results) ++uses[result];
    std::unordered_set<const Node*> joined;
    for (Node* node : block.nodes) {
      if (node->op != &op::add || node->inputs[0]->type != node->output()->type ||
          graph::constant_number(node->inputs[2]) != 1)
        continue;
      const Node* added = node->inputs[1]->definition;
      if (added == nullptr || added->parent != &block || uses[node->inputs[1]] != 1) continue;
      if (added->op == &op::mm && added->output()->type == node->output()->type) {
        node->op = &op::addmm;
        node->inputs = {node->inputs[0], added->inputs[0], added->inputs[1], node->inputs[2],
                        node->inputs[2]};
      } else if (added->op == &op::row_backward) {
        node->op = &op::add_to_row;
        node->inputs = {node->inputs[0], added->inputs[0], added->inputs[1]};
        node->attributes = {};
      } else {
        continue;
      }
      joined.insert(added);
    }
    std::erase_if(block.nodes, [&](const Node* node) { return joined.contains(node); });
  }

  Graph& graph_;
  Block& body_;
  const Predecessors before_;
  std::unordered_map<const Node*, uint32_t> region_;
  std::unordered_map<const Node*, Renewed> now_;  ///< by new function: what the body has for it
};

}  // namespace

std::vector<Node*> outline(Graph& graph, size_t least,
                           const std::function<bool(const Node&)>& is_seed) {
  return Outliner(graph).outline(least, is_seed);
}

}  // namespace janus::passes
