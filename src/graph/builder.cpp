#include "graph/builder.h"

#include "graph/constant.h"

namespace janus::graph {

Value* Builder::input(Type type, std::string name) {
  return graph_->new_parameter(graph_->body(), std::move(type), std::move(name));
}

Node* Builder::append_unchecked(const OpDef& op, std::span<Value* const> inputs,
                                Attributes attributes, std::vector<Type> result_types) {
  Node* node = graph_->new_node(op);
  node->inputs.assign(inputs.begin(), inputs.end());
  node->attributes = std::move(attributes);
  node->span = span_;
  for (Type& type : result_types) graph_->new_output(*node, std::move(type));
  graph_->append(*block_, node);
  return node;
}

Node* Builder::append(const OpDef& op, std::span<Value* const> inputs, Attributes attributes) {
  fill_defaults(op, attributes);
  std::vector<Value*> operands(inputs.begin(), inputs.end());
  const auto parameters = op.signature().operands();
  for (size_t i = operands.size(); i < parameters.size(); ++i) {
    if (parameters[i]->kind == Parameter::Kind::tensor_list || !parameters[i]->default_value) break;
    operands.push_back(constant_of(*parameters[i]->default_value));
  }
  std::vector<Type> types = infer_results(op, operands, attributes);
  return append_unchecked(op, operands, std::move(attributes), std::move(types));
}

Value* Builder::constant_of(AttributeValue value) {
  return append(op::constant, {}, {{"value", std::move(value)}})->output();
}

Value* Builder::constant(double value) { return constant_of(value); }
Value* Builder::constant(int64_t value) { return constant_of(value); }
Value* Builder::constant(bool value) { return constant_of(value); }
Value* Builder::none() { return constant_of(None{}); }

Value* OpDef::operator()(Builder& builder, std::initializer_list<Value*> inputs,
                         Attributes attributes) const {
  return builder.append(*this, inputs, std::move(attributes))->output();
}

}  // namespace janus::graph
