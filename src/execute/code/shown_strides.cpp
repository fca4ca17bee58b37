// See shown_strides.h.
#include "execute/code/shown_strides.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "execute/code/container_operators.h"
#include "graph/functions.h"
#include "graph/op.h"
#include "ops/list.h"

namespace janus::execute {

using graph::Node;
using graph::Value;

namespace {

class Search {
 public:
  explicit Search(const graph::Graph& graph) {
    graph::for_each_node(graph.body(), [&](const Node& node) {
      if (node.op == &op::call) calls_[graph::function_name(node)].push_back(&node);
      for (const auto& block : node.blocks)
        for (const Value* parameter : block->parameters) owners_[parameter] = &node;
    });
  }

  void visit(const Value* value) {
    const bool lies_somehow = !value->type.is_tensor() || !value->type.shape.empty();
    if (value->type.is_number() || !lies_somehow || !seen_.insert(value).second) return;
    waiting_.push_back(value);
  }

  std::unordered_set<const Node*> run() {
    while (!waiting_.empty()) {
      const Value* value = waiting_.back();
      waiting_.pop_back();
      if (value->definition != nullptr)
        follow(*value->definition, value->index);
      else if (const auto owner = owners_.find(value); owner != owners_.end())
        follow_parameter(*owner->second, value->index);
    }
    return std::move(found_);
  }

 private:
  void follow(const Node& node, uint32_t index) {
    if (is_container_operator(*node.op)) found_.insert(&node);
    if (node.op == &op::call) {
      found_.insert(&node);
      return visit(graph::callee(node)->blocks.front()->results[index]);
    }
    if (node.op == &op::if_) {
      found_.insert(&node);
      for (const auto& side : node.blocks) visit(side->results[index]);
      return;
    }
    if (node.op == &op::while_) {
      found_.insert(&node);
      visit(node.blocks[1]->results[index]);
      return visit(node.inputs[index]);
    }
    for (const Value* operand : node.inputs) visit(operand);
  }

  void follow_parameter(const Node& owner, uint32_t index) {
    if (owner.op == &op::while_) return follow(owner, index);
    if (owner.op != &op::function) return;
    for (const Node* call : calls_[graph::function_name(owner)]) visit(call->inputs[index]);
  }

  std::unordered_map<std::string, std::vector<const Node*>> calls_;  // by the function's name
  std::unordered_map<const Value*, const Node*> owners_;             // of parameters
  std::unordered_set<const Value*> seen_;
  std::vector<const Value*> waiting_;
  std::unordered_set<const Node*> found_;
};

}  // namespace

std::unordered_set<const Node*> nodes_behind(const graph::Graph& graph,
                                             std::span<const ShownResult> results) {
  const auto is_open = [](const ShownResult& result) { return !result.strides; };
  if (std::ranges::none_of(results, is_open)) return {};
  Search search(graph);
  for (const ShownResult& result : results)
    if (is_open(result)) search.visit(graph.results()[result.index]);
  return search.run();
}

}  // namespace janus::execute
