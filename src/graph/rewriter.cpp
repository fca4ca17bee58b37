#include "graph/rewriter.h"

#include <algorithm>

#include "base/time_budget.h"

namespace janus::graph {
namespace {

bool same_types(std::span<Value* const> a, std::span<Value* const> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Value* x, const Value* y) { return x->type == y->type; });
}

/// Whether the copy's operands and blocks have the types of the original's, so that its results do
/// as well.
bool same_shape_rule_inputs(const Node& original, const Node& copy) {
  if (!same_types(original.inputs, copy.inputs)) return false;
  for (size_t i = 0; i < copy.blocks.size(); ++i)
    if (!same_types(original.blocks[i]->results, copy.blocks[i]->results)) return false;
  return true;
}

std::vector<Type> types_of(std::span<Value* const> values) {
  std::vector<Type> result;
  for (const Value* value : values) result.push_back(value->type);
  return result;
}

}  // namespace

Rewriter::Rewriter(const Graph& old_graph)
    : old_(old_graph),
      graph_(old_graph.name()),
      builder_(graph_),
      map_(old_graph.value_count(), nullptr) {
  for (const Value* parameter : old_graph.inputs())
    set(parameter, graph_.new_parameter(graph_.body(), parameter->type, parameter->name));
}

bool Rewriter::has(const Value* old_value) const {
  return old_value->id < map_.size() && map_[old_value->id] != nullptr;
}

Value* Rewriter::operator[](const Value* old_value) const {
  TORCHJANUS_CHECK(has(old_value), "rewriter: value %", old_value->name, " (", old_value->type,
                   ") has no new value yet");
  return map_[old_value->id];
}

std::vector<Value*> Rewriter::operator[](std::span<Value* const> old_values) const {
  std::vector<Value*> result;
  result.reserve(old_values.size());
  for (const Value* value : old_values) result.push_back((*this)[value]);
  return result;
}

void Rewriter::set(const Value* old_value, Value* new_value) {
  TORCHJANUS_CHECK(old_value->id < map_.size(), "rewriter: value is not of the old graph");
  TORCHJANUS_CHECK(new_value != nullptr, "rewriter: no new value given for %", old_value->name);
  map_[old_value->id] = new_value;
  if (new_value->name.empty()) new_value->name = old_value->name;
}

void Rewriter::replace(const Node& node, std::span<Value* const> new_outputs) {
  TORCHJANUS_CHECK(node.outputs.size() == new_outputs.size(), "rewriter: ", node.op->name, " has ",
                   node.outputs.size(), " results, ", new_outputs.size(), " given");
  for (size_t i = 0; i < new_outputs.size(); ++i) set(node.outputs[i], new_outputs[i]);
}

Node* Rewriter::copy(const Node& node) {
  spend_time();
  Node* result = graph_.new_node(*node.op);
  result->inputs = (*this)[node.inputs];
  result->attributes = node.attributes;
  result->span = node.span;
  for (const auto& block : node.blocks) {
    Block& to = result->add_block();
    for (size_t i = 0; i < block->parameters.size(); ++i) {
      const Value* parameter = block->parameters[i];
      // A parameter that stands for an operand follows the operand's type.
      const bool follows =
          block->parameters.size() == node.inputs.size() && parameter->type == node.inputs[i]->type;
      const Type& type = follows ? result->inputs[i]->type : parameter->type;
      set(parameter, graph_.new_parameter(to, type, parameter->name));
    }
    run_block(*block, to);
  }
  std::vector<Type> types =
      node.op->infer == nullptr || same_shape_rule_inputs(node, *result)
          ? types_of(node.outputs)
          : infer_results(*node.op, result->inputs, result->attributes, result->blocks);
  for (size_t i = 0; i < types.size(); ++i) {
    Value* value = graph_.new_value(std::move(types[i]));
    value->definition = result;
    value->index = static_cast<uint32_t>(i);
    result->outputs.push_back(value);
  }
  graph_.append(builder_.block(), result);
  replace(node, result->outputs);
  return result;
}

void Rewriter::run(const std::function<bool(const Node&)>& visit) {
  visit_ = visit;
  run_block(old_.body(), graph_.body());
  visit_ = nullptr;
}

void Rewriter::run_block(const Block& from, Block& to) {
  const Builder outer = builder_;
  builder_ = Builder(graph_, to);
  for (const Node* node : from.nodes) {
    builder_.set_span(node->span);
    if (!visit_ || !visit_(*node)) copy(*node);
  }
  to.results = (*this)[from.results];
  builder_ = outer;
}

Graph Rewriter::finish() { return std::move(graph_); }

}  // namespace janus::graph
