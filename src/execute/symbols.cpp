// Symbols are bound by the first input or cell that shows them bare.
#include "execute/symbols.h"

#include <algorithm>

#include "graph/op.h"
#include "graph/run_time_symbols.h"
#include "ops/list.h"

namespace janus::execute {

using graph::Dim;
using graph::Node;
using graph::Shape;
using graph::Type;
using graph::Value;

namespace {

void add_symbols(const Shape& shape, std::set<std::string>& names) {
  for (const Dim& dim : shape) {
    if (dim.is_constant()) continue;
    for (std::string& name : dim.symbols()) names.insert(std::move(name));
  }
}

/// Symbols on which sizes or attributes of the node depend.
void add_symbols(const Node& node, std::set<std::string>& names) {
  for (const Value* output : node.outputs) add_symbols(output->type.shape, names);
  if (node.op == &op::size) return;
  for (const auto& [name, value] : node.attributes) {
    if (const auto* dim = std::get_if<Dim>(&value)) add_symbols(Shape{*dim}, names);
    if (const auto* shape = std::get_if<Shape>(&value)) add_symbols(*shape, names);
  }
}

}  // namespace

Symbols::Symbols(const graph::Graph& graph, std::span<const std::string> cells)
    : input_count_(graph.inputs().size()) {
  for (size_t i = 0; i < input_count_; ++i) bind(graph.inputs()[i]->type, i);
  graph::for_each_node(graph.body(), [&](const Node& node) {
    if (node.op != &op::state) return;
    const auto& name = node.attributes.get<std::string>("cell");
    const auto cell = std::find(cells.begin(), cells.end(), name) - cells.begin();
    bind(node.output()->type, input_count_ + static_cast<size_t>(cell));
  });
  for (size_t i = 0; i < input_count_; ++i) {
    const Value& input = *graph.inputs()[i];
    if (input.type.kind == Type::Kind::i64 && bound_.insert(input.name).second) {
      places_.push_back({input.name, i, 0, true});
      varies_ = true;
    }
  }
  find_layout_inputs(graph);
}

void Symbols::bind(const Type& type, size_t operand) {
  if (!type.is_tensor()) return;
  for (size_t d = 0; d < type.shape.size(); ++d) {
    const std::string name = graph::symbol_shown_by(type.shape[d]);
    if (!name.empty() && bound_.insert(name).second) places_.push_back({name, operand, d, false});
  }
}

void Symbols::find_layout_inputs(const graph::Graph& graph) {
  std::set<std::string> names;
  for (const Value* input : graph.inputs()) add_symbols(input->type.shape, names);
  graph::for_each_node(graph.body(), [&](const Node& node) { add_symbols(node, names); });
  for (const Place& place : places_) {
    if (place.is_number && names.contains(place.name)) layout_inputs_.push_back(place.operand);
  }
}

SymbolValues Symbols::values(std::span<const Slot> inputs, std::span<const Slot> cells,
                             const Library& library) const {
  SymbolValues values;
  for (const Place& place : places_) {
    const Slot& slot =
        place.operand < input_count_ ? inputs[place.operand] : cells[place.operand - input_count_];
    values.set(place.name,
               place.is_number ? slot.i64() : library.layout(slot).sizes.at(place.dimension));
  }
  return values;
}

}  // namespace janus::execute
