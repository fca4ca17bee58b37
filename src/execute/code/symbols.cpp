// Symbols are bound by the first input or cell that shows them bare.
#include "execute/code/symbols.h"

#include <algorithm>
#include <string_view>

#include "graph/op.h"
#include "graph/run_time_symbols.h"
#include "ops/list.h"

namespace janus::execute {

using graph::Dim;
using graph::Graph;
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

/// The attributes that say where a moving part lies.
bool places_part(std::string_view attribute) {
  return attribute == "start" || attribute == "end" || attribute == "index";
}

/// Symbols on which sizes or attributes of the node depend, but for where a moving part begins.
void add_symbols(const Node& node, const std::optional<MovingPart>& part,
                 std::set<std::string>& names) {
  for (const Value* output : node.outputs) add_symbols(output->type.shape, names);
  if (node.op == &op::size) return;
  if (part) add_symbols(Shape{part->behind - part->first, part->size}, names);
  for (const auto& [name, value] : node.attributes) {
    if (part && places_part(name)) continue;
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
  graph::for_each_node(graph.body(), [&](const Node& node) {
    // Nodes in blocks run more than once, or in kernels, with attributes that stay.
    const bool may_move = node.parent == &graph.body();
    add_symbols(node, may_move ? moving_part(node) : std::nullopt, names);
  });
  for (const Place& place : places_)
    if (place.is_number && names.contains(place.name)) layout_inputs_.push_back(place.operand);
  find_moving_parts(graph, names);
}

void Symbols::find_moving_parts(const Graph& graph, const std::set<std::string>& layout_names) {
  std::set<std::string> moving;
  for (const Place& place : places_)
    if (place.is_number && !layout_names.contains(place.name)) moving.insert(place.name);
  std::set<std::string> used;
  for (const Node* node : graph.body().nodes) {
    auto part = moving_part(*node);
    if (!part || !part->depends_on(moving)) continue;
    add_symbols(Shape{part->first}, used);
    parts_.push_back(std::move(*part));
  }
  for (const Place& place : places_)
    if (moving.contains(place.name) && used.contains(place.name))
      moving_inputs_.push_back(place.operand);
}

std::optional<std::vector<int64_t>> Symbols::first_elements(const SymbolValues& values) const {
  std::vector<int64_t> firsts;
  for (const MovingPart& part : parts_) {
    const auto first = part.first.evaluate(values.lookup());
    const auto behind = part.behind.evaluate(values.lookup());
    const auto size = part.size.evaluate(values.lookup());
    if (!first || !behind || !size) return std::nullopt;
    if (*first < 0 || *behind < *first || *behind > *size) return std::nullopt;
    firsts.push_back(*first);
  }
  return firsts;
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
