// See dead_results.h.
#include "passes/cleanup/dead_results.h"

#include <map>
#include <span>
#include <string>

#include "graph/functions.h"
#include "ops/list.h"
#include "passes/analysis/liveness.h"

namespace janus::passes {

using graph::Block;
using graph::Graph;
using graph::Node;
using graph::Value;

namespace {

/// Keeps the values whose flag is set; the others' places close.
void keep(std::vector<Value*>& values, const std::vector<bool>& flags) {
  std::vector<Value*> kept;
  for (size_t i = 0; i < values.size(); ++i)
    if (flags[i]) kept.push_back(values[i]);
  values = std::move(kept);
}

void number(std::vector<Value*>& values) {
  for (size_t i = 0; i < values.size(); ++i) values[i]->index = static_cast<uint32_t>(i);
}

void keep_results(Node& node, const std::vector<bool>& flags) {
  keep(node.outputs, flags);
  number(node.outputs);
  if (node.op == &op::if_) {
    for (const auto& block : node.blocks) keep(block->results, flags);
    return;
  }
  keep(node.inputs, flags);
  keep(node.blocks[1]->results, flags);
  for (const auto& block : node.blocks) {
    keep(block->parameters, flags);
    number(block->parameters);
  }
}

bool is_carried_live(const Liveness& liveness, const Node& node, size_t k) {
  if (liveness.is_live(node.outputs[k])) return true;
  return node.op == &op::while_ && (liveness.is_live(node.blocks[0]->parameters[k]) ||
                                    liveness.is_live(node.blocks[1]->parameters[k]));
}

/// Drops a function's results and parameters that nobody needs, and those of its calls.
void keep_interface(Node& function, const Liveness& liveness, std::span<Node* const> calls) {
  Block& block = *function.blocks.front();
  std::vector<bool> results, parameters;
  for (size_t i = 0; i < block.results.size(); ++i)
    results.push_back(liveness.is_result_live(function, i));
  for (const Value* parameter : block.parameters) parameters.push_back(liveness.is_live(parameter));
  keep(block.results, results);
  keep(block.parameters, parameters);
  number(block.parameters);
  for (Node* call : calls) {
    keep(call->outputs, results);
    number(call->outputs);
    keep(call->inputs, parameters);
  }
}

void drop_from_functions(Graph& graph, const Liveness& liveness) {
  std::map<std::string, std::vector<Node*>> calls;
  graph::for_each_node(graph.body(), [&](Node& node) {
    if (node.op == &op::call) calls[graph::function_name(node)].push_back(&node);
  });
  for (Node* node : graph.body().nodes)
    if (node->op == &op::function && liveness.is_live(*node))
      keep_interface(*node, liveness, calls[graph::function_name(*node)]);
}

}  // namespace

void drop_dead_results(Graph& graph) {
  const Liveness liveness(graph);
  drop_from_functions(graph, liveness);
  graph::for_each_node(graph.body(), [&](Node& node) {
    if (node.op != &op::if_ && node.op != &op::while_) return;
    std::vector<bool> flags;
    bool all = true;
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      flags.push_back(is_carried_live(liveness, node, k));
      all &= flags.back();
    }
    if (!all && liveness.is_live(node)) keep_results(node, flags);
  });
}

}  // namespace janus::passes
