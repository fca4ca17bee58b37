// See graph_of_node.h.
#include "passes/structure/graph_of_node.h"

#include "graph/builder.h"
#include "ops/list.h"

namespace janus::passes {

using graph::Node;
using graph::Value;

const Node* constant_behind(const Value& operand) {
  const Node* definition = operand.definition;
  return definition != nullptr && definition->op == &op::constant ? definition : nullptr;
}

graph::Graph graph_of(const Node& node) {
  graph::Graph graph("probe");
  graph::Builder builder(graph);
  std::vector<Value*> inputs;
  for (const Value* input : node.inputs) {
    Value* parameter = builder.input(input->type, input->name);
    const Node* value = constant_behind(*input);
    inputs.push_back(value == nullptr
                         ? parameter
                         : builder.append(op::constant, {}, value->attributes)->output());
  }
  graph.body().results = builder.append(*node.op, inputs, node.attributes)->outputs;
  return graph;
}

}  // namespace janus::passes
