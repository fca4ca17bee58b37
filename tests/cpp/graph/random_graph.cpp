#include "random_graph.h"

#include <algorithm>

#include "ops/list.h"

namespace janus::graph {
namespace {

std::vector<Type> types_of(const std::vector<Value*>& values) {
  std::vector<Type> types;
  for (const Value* value : values) types.push_back(value->type);
  return types;
}

/// Gives a node that was built without results those that its operator infers.
void infer_outputs(Graph& graph, Node& node) {
  for (Type& type : infer_results(*node.op, node.inputs, node.attributes, node.blocks)) {
    Value* value = graph.new_value(std::move(type));
    value->definition = &node;
    value->index = static_cast<uint32_t>(node.outputs.size());
    node.outputs.push_back(value);
  }
}

}  // namespace

Graph RandomGraph::build(int size) {
  Builder builder(graph_);
  const Dim b = Dim::symbol("B");
  flags_.push_back(builder.input(Type::boolean(), "flag"));
  builder.input(Type::i64(), "n");
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{b, 3}, Shape{b, b * 2 - 1}})
    tensors_.push_back(builder.input(Type::tensor(DType::f32, shape), name()));
  for (int i = 0; i < size; ++i) add_node(builder, 0);
  for (int i = 0; i < 3; ++i) graph_.body().results.push_back(tensor());
  return std::move(graph_);
}

Value* RandomGraph::tensor() { return tensors_[pick(tensors_.size())]; }

/// Never fails: the inputs have every type there is.
Value* RandomGraph::tensor_like(const Type& type) {
  std::vector<Value*> fitting;
  std::copy_if(tensors_.begin(), tensors_.end(), std::back_inserter(fitting),
               [&](const Value* value) { return value->type == type; });
  return fitting[pick(fitting.size())];
}

std::string RandomGraph::name() {
  static const char* const names[] = {"", "", "x", "y", "loss", "self.fc", "7", "x.1", "a b", "é"};
  return names[pick(std::size(names))];
}

void RandomGraph::add_node(Builder& builder, int depth) {
  switch (pick(depth < 3 ? 10 : 6)) {
    case 6:
      return add_branch(builder, depth);
    case 7:
      return add_loop(builder, depth);
    case 8:
      return add_fused(builder);
    case 9:
      return add_attributes(builder);
    default:
      return add_elementwise(builder);
  }
}

void RandomGraph::add_elementwise(Builder& builder) {
  static const OpDef* const unary[] = {&op::relu, &op::tanh, &op::neg, &op::detach};
  Value* operand = tensor();
  Value* result = chance(2) ? (*unary[pick(std::size(unary))])(builder, {operand})
                            : op::mul(builder, {operand, tensor_like(operand->type)});
  result->name = name();
  tensors_.push_back(result);
}

void RandomGraph::fill_block(Node& node, Block& block, int depth,
                             const std::vector<Type>& result_types) {
  const auto outer_tensors = tensors_, outer_flags = flags_;
  for (Value* parameter : block.parameters)
    (parameter->type.is_tensor() ? tensors_ : flags_).push_back(parameter);
  Builder inner(graph_, block);
  for (size_t count = pick(4); count > 0; --count) add_node(inner, depth + 1);
  for (const Type& type : result_types)
    block.results.push_back(type.is_tensor() ? tensor_like(type) : flag());
  tensors_ = outer_tensors;
  flags_ = outer_flags;
}

void RandomGraph::add_branch(Builder& builder, int depth) {
  Node* node = graph_.new_node(op::if_);
  node->inputs = {flag()};
  std::vector<Type> types;
  for (size_t count = pick(3); count > 0; --count) types.push_back(tensor()->type);
  for (int side = 0; side < 2; ++side) fill_block(*node, node->add_block(), depth, types);
  infer_outputs(graph_, *node);
  graph_.append(builder.block(), node);
  tensors_.insert(tensors_.end(), node->outputs.begin(), node->outputs.end());
}

/// Carries a flag that the body sets to false, so that the loop ends after one iteration at most.
void RandomGraph::add_loop(Builder& builder, int depth) {
  Value* stop = builder.constant(false);
  Node* node = graph_.new_node(op::while_);
  node->inputs = {flag(), tensor()};
  const std::vector<Type> types = types_of(node->inputs);
  for (int i = 0; i < 2; ++i) {
    Block& block = node->add_block();
    for (const Type& type : types) graph_.new_parameter(block, type, name());
  }
  node->blocks[0]->results = {node->blocks[0]->parameters[0]};
  fill_block(*node, *node->blocks[1], depth, types);
  node->blocks[1]->results[0] = stop;
  infer_outputs(graph_, *node);
  graph_.append(builder.block(), node);
  flags_.push_back(node->outputs[0]);
  tensors_.push_back(node->outputs[1]);
}

void RandomGraph::add_fused(Builder& builder) {
  Node* node = graph_.new_node(op::fused);
  Value* operand = tensor();
  node->inputs = {operand, tensor_like(operand->type)};
  Block& block = node->add_block();
  for (const Value* input : node->inputs) graph_.new_parameter(block, input->type);
  Builder inner(graph_, block);
  Value* product = op::mul(inner, {block.parameters[0], block.parameters[1]});
  block.results = {op::relu(inner, {product}), product};
  infer_outputs(graph_, *node);
  graph_.append(builder.block(), node);
  tensors_.insert(tensors_.end(), node->outputs.begin(), node->outputs.end());
}

/// A node that nobody executes, with attributes of every kind.
void RandomGraph::add_attributes(Builder& builder) {
  static const AttributeValue values[] = {None{},
                                          true,
                                          int64_t{-4},
                                          0.1,
                                          -0.0,
                                          std::string("a \"b\"\n\\"),
                                          DType::bf16,
                                          Dim::symbol("B") * 2 + 1,
                                          Shape{Dim::symbol("n", true), -1},
                                          std::vector<double>{1.5, -0.0},
                                          std::vector<bool>{true, false}};
  Attributes attributes;
  for (int i = 0; i < 3; ++i)
    attributes.set("_note" + std::to_string(i), values[pick(std::size(values))]);
  Value* operand = tensor();
  tensors_.push_back(builder.append(op::detach, {operand}, std::move(attributes))->output());
}

}  // namespace janus::graph
