// See pool_first.h.
#include "passes/lowering/pool_first.h"

#include <vector>

#include "graph/rewriter.h"
#include "ops/list.h"

namespace janus::passes {
namespace {

using graph::Node;
using graph::Value;

std::vector<uint32_t> count_uses(const graph::Graph& graph) {
  std::vector<uint32_t> uses(graph.value_count());
  const auto use = [&](std::span<Value* const> values) {
    for (const Value* value : values) ++uses[value->id];
  };
  use(graph.results());
  graph::for_each_node(graph.body(), [&](const Node& node) {
    use(node.inputs);
    for (const auto& block : node.blocks) use(block->results);
  });
  return uses;
}

bool takes_maxima(const Node& node) {
  return node.op == &op::max_pool2d_with_indices || node.op == &op::max_pool3d_with_indices;
}

}  // namespace

graph::Graph pool_first(const graph::Graph& graph) {
  const std::vector<uint32_t> uses = count_uses(graph);
  graph::Rewriter rewriter(graph);
  rewriter.run([&](const Node& node) {
    if (!takes_maxima(node)) return false;
    const Node* relu = node.inputs.front()->definition;
    if (relu == nullptr || relu->op != &op::relu || relu->parent != node.parent) return false;
    if (uses[relu->output()->id] != 1 || uses[node.outputs[1]->id] != 0) return false;
    graph::Builder& builder = rewriter.builder();
    const Node* pool = builder.append(*node.op, {rewriter[relu->inputs.front()]}, node.attributes);
    builder.set_span(relu->span);
    rewriter.replace(node, {op::relu(builder, {pool->outputs[0]}), pool->outputs[1]});
    return true;
  });
  return rewriter.finish();
}

}  // namespace janus::passes
