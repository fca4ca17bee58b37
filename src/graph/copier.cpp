// See copier.h.
#include "graph/copier.h"

#include "base/check.h"

namespace janus::graph {

Value* Copier::copy_of(const Value* original) const {
  const auto found = copies_.find(original);
  TORCHJANUS_CHECK(found != copies_.end(), "copier: value %", original->name, " (", original->type,
                   ") has no copy");
  return found->second;
}

Value* Copier::operator[](Value* original) const {
  const auto found = copies_.find(original);
  if (found == copies_.end() && unknown_ == Unknown::same_value) return original;
  return copy_of(original);
}

Node* Copier::copy(const Node& node, Builder& builder) {
  std::vector<Value*> inputs;
  std::vector<Type> types;
  for (Value* input : node.inputs) inputs.push_back((*this)[input]);
  for (const Value* output : node.outputs) types.push_back(output->type);
  builder.set_span(node.span);
  Node* made = builder.append_unchecked(*node.op, inputs, node.attributes, std::move(types));
  for (const auto& block : node.blocks) copy_block(*block, made->add_block(), builder.graph());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    made->outputs[i]->name = node.outputs[i]->name;
    set(node.outputs[i], made->outputs[i]);
  }
  return made;
}

void Copier::copy_block(const Block& from, Block& to, Graph& graph) {
  for (const Value* parameter : from.parameters)
    set(parameter, graph.new_parameter(to, parameter->type, parameter->name));
  Builder builder(graph, to);
  for (const Node* node : from.nodes) copy(*node, builder);
  for (Value* result : from.results) to.results.push_back((*this)[result]);
}

}  // namespace janus::graph
