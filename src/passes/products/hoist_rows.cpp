// See hoist_rows.h.
#include "passes/products/hoist_rows.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "graph/op.h"
#include "ops/list.h"
#include "passes/batching/batching_rules.h"
#include "passes/cleanup/loop_invariant_code_motion.h"
#include "passes/structure/contains.h"
#include "passes/structure/copied.h"
#include "passes/structure/counted_loop.h"

namespace janus::passes {
namespace {

using graph::Block;
using graph::Node;
using graph::Trait;
using graph::Value;

/// Values that the iterations of one loop compute from their rows.
class Rows {
 public:
  Rows(const CountedLoop& loop, graph::Builder& front) : loop_(loop), front_(front) {}

  void multiply_in_front() {
    for (Node* node : loop_.body->nodes) {
      if (is_row(*node) || is_of_rows(*node)) of_rows_.insert(node);
      const bool is_product = node->op == &op::linear || node->op == &op::mm || node->op == &op::mv;
      Value* all = is_product && of_rows_.contains(node) ? for_all_rows(*node->output()) : nullptr;
      if (all == nullptr) continue;
      node->op = &op::row;
      node->inputs = {all, const_cast<Value*>(loop_.counter)};
      node->attributes = {};
    }
  }

 private:
  bool is_row(const Node& node) const {
    return node.op == &op::row && node.inputs[1] == loop_.counter && is_outer(*node.inputs[0]) &&
           node.inputs[0]->type.shape.front() == loop_.iterations;
  }

  /// Made of values that are made of rows, and of values from outside.
  bool is_of_rows(const Node& node) const {
    const bool computes = node.op->is(Trait::pure) && !node.op->is(Trait::random) &&
                          !node.op->is(Trait::may_fail) && node.blocks.empty() &&
                          node.outputs.size() == 1;
    return computes &&
           std::ranges::any_of(node.inputs,
                               [&](const Value* input) { return is_made_of_rows(*input); }) &&
           std::ranges::all_of(node.inputs, [&](const Value* input) {
             return is_made_of_rows(*input) || is_outer(*input);
           });
  }
  bool is_made_of_rows(const Value& value) const { return of_rows_.contains(value.definition); }
  bool is_outer(const Value& value) const { return !is_inside(value, *loop_.body); }

  /// The value for all iterations, in front of the loop; null if its operator has no batching rule.
  Value* for_all_rows(const Value& value) {
    const auto [found, is_new] = all_.try_emplace(&value, nullptr);
    if (!is_new) return found->second;
    Value* all = computed(*value.definition);
    all_[&value] = all;
    return all;
  }

  Value* computed(const Node& node) {
    if (is_row(node)) return node.inputs[0];
    std::vector<Value*> inputs;
    std::vector<bool> stacked;
    for (Value* input : node.inputs) {
      stacked.push_back(is_made_of_rows(*input));
      inputs.push_back(stacked.back() ? for_all_rows(*input) : input);
      if (inputs.back() == nullptr) return nullptr;
    }
    try {
      const auto results = append_for_rows(front_, node, inputs, stacked, loop_.iterations);
      return results ? results->front() : nullptr;
    } catch (const graph::TypeError&) {
      return nullptr;
    }
  }

  const CountedLoop& loop_;
  graph::Builder& front_;
  std::unordered_set<const Node*> of_rows_;
  std::unordered_map<const Value*, Value*> all_;
};

void hoist_rows(graph::Graph& graph, Block& block) {
  const std::vector<Node*> nodes = std::exchange(block.nodes, {});
  for (Node* node : nodes) {
    for (const auto& nested : node->blocks) hoist_rows(graph, *nested);
    if (const auto loop = CountedLoop::of(*node); loop && !differentiates(*loop->body)) {
      graph::Builder front(graph, block);
      Rows(*loop, front).multiply_in_front();
    }
    block.nodes.push_back(node);
  }
}

}  // namespace

graph::Graph hoist_rows(graph::Graph graph) {
  if (!contains(graph, op::while_)) return graph;
  hoist_rows(graph, graph.body());
  return copied(graph);
}

}  // namespace janus::passes
