// See late_relu.h.
#include "passes/lowering/late_relu.h"

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

class LateRelu {
 public:
  explicit LateRelu(const graph::Graph& graph) : uses_(count_uses(graph)), rewriter_(graph) {}

  graph::Graph run() {
    rewriter_.run([&](const Node& node) {
      if (takes_maxima(node)) return pool_first(node);
      return node.op == &op::cat && join_first(node);
    });
    return rewriter_.finish();
  }

 private:
  /// What relu is applied to, in the new graph, if only the node uses the result; null: no relu
  /// is. It may have been in front of the node's operand first.
  Value* operand_of_relu(const Node& node, size_t index) {
    const Value* given = node.inputs[index];
    if (given->definition == nullptr || given->definition->parent != node.parent ||
        uses_[given->id] != 1)
      return nullptr;
    const Node* relu = rewriter_[given]->definition;
    return relu != nullptr && relu->op == &op::relu ? relu->inputs.front() : nullptr;
  }

  void set_span_of(const Value* value) { rewriter_.builder().set_span(value->definition->span); }

  bool pool_first(const Node& node) {
    Value* const operand = operand_of_relu(node, 0);
    if (operand == nullptr || uses_[node.outputs[1]->id] != 0) return false;
    graph::Builder& builder = rewriter_.builder();
    const Node* pool = builder.append(*node.op, {operand}, node.attributes);
    set_span_of(rewriter_[node.inputs[0]]);
    rewriter_.replace(node, {op::relu(builder, {pool->outputs[0]}), pool->outputs[1]});
    return true;
  }

  bool join_first(const Node& node) {
    std::vector<Value*> operands;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      Value* const operand = operand_of_relu(node, i);
      if (operand == nullptr || operand->type.dtype != node.output()->type.dtype) return false;
      const Node* made_by = operand->definition;
      if (made_by == nullptr || made_by->op->is(graph::Trait::elementwise)) return false;
      operands.push_back(operand);
    }
    if (operands.empty()) return false;
    graph::Builder& builder = rewriter_.builder();
    Value* const joined = builder.append(*node.op, operands, node.attributes)->output();
    set_span_of(rewriter_[node.inputs[0]]);
    rewriter_.replace(node, {op::relu(builder, {joined})});
    return true;
  }

  std::vector<uint32_t> uses_;
  graph::Rewriter rewriter_;
};

}  // namespace

graph::Graph late_relu(const graph::Graph& graph) { return LateRelu(graph).run(); }

}  // namespace janus::passes
