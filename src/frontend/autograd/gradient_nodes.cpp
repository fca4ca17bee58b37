#include "frontend/autograd/gradient_nodes.h"

#include <unordered_set>

#include "frontend/core/autograd_state.h"
#include "graph/functions.h"
#include "passes/reach/gradient_edges.h"
#include "passes/reach/reachability.h"
#include "passes/structure/captures.h"

namespace janus::frontend {

void add_inner_nodes(const graph::Node& node, Functions functions,
                     std::vector<const graph::Node*>& nodes) {
  auto add = [&](const graph::Node& of) {
    for (const auto& block : of.blocks)
      graph::for_each_node(*block, [&](const graph::Node& inner) { nodes.push_back(&inner); });
  };
  add(node);
  if (functions == Functions::left_out) return;
  for (const graph::Node* function : graph::functions_run_by(node)) add(*function);
}

std::vector<const graph::Node*> gradient_nodes(const std::vector<graph::Value*>& outputs,
                                               Functions functions) {
  std::vector<const graph::Node*> nodes;
  std::unordered_set<const graph::Node*> seen;
  std::vector<graph::Value*> open = outputs;
  while (!open.empty()) {
    graph::Value* value = open.back();
    open.pop_back();
    const graph::Node* node = value->definition;
    if (node == nullptr || !passes::carries_gradient(value->type) ||
        !passes::passes_gradient(*node) || !seen.insert(node).second)
      continue;
    nodes.push_back(node);
    add_inner_nodes(*node, functions, nodes);
    for (graph::Value* input : passes::operands(*node)) open.push_back(input);
  }
  return nodes;
}

bool any_differentiable(const AutogradState& autograd, const std::vector<graph::Value*>& values) {
  for (const graph::Value* value : values)
    if (autograd.differentiable.contains(value)) return true;
  return false;
}

}  // namespace janus::frontend
