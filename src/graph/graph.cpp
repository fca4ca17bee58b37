#include "graph/graph.h"

namespace janus::graph {

Value* Graph::new_value(Type type, std::string name) {
  auto value = std::make_unique<Value>();
  value->type = std::move(type);
  value->name = std::move(name);
  value->id = static_cast<uint32_t>(values_.size());
  values_.push_back(std::move(value));
  return values_.back().get();
}

Value* Graph::new_parameter(Block& block, Type type, std::string name) {
  Value* value = new_value(std::move(type), std::move(name));
  value->owner = &block;
  value->index = static_cast<uint32_t>(block.parameters.size());
  block.parameters.push_back(value);
  return value;
}

Block& Node::add_block() {
  blocks.push_back(std::make_unique<Block>());
  blocks.back()->parent = this;
  return *blocks.back();
}

Node* Graph::new_node(const OpDef& op) {
  nodes_.push_back(std::make_unique<Node>());
  nodes_.back()->op = &op;
  return nodes_.back().get();
}

Value* Graph::new_output(Node& node, Type type, std::string name) {
  Value* value = new_value(std::move(type), std::move(name));
  value->definition = &node;
  value->index = static_cast<uint32_t>(node.outputs.size());
  node.outputs.push_back(value);
  return value;
}

void Graph::append(Block& block, Node* node) {
  node->parent = &block;
  block.nodes.push_back(node);
}

}  // namespace janus::graph
