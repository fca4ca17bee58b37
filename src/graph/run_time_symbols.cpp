#include "graph/run_time_symbols.h"

#include <algorithm>

#include "graph/op.h"

namespace janus::graph {

namespace {

bool mentions(const Dim& dim, const std::string& symbol) {
  if (dim.is_constant()) return false;
  const std::vector<std::string> names = dim.symbols();
  return std::find(names.begin(), names.end(), symbol) != names.end();
}

bool mentions(const Shape& shape, const std::string& symbol) {
  return std::any_of(shape.begin(), shape.end(),
                     [&](const Dim& dim) { return mentions(dim, symbol); });
}

bool mentions(const AttributeValue& value, const std::string& symbol) {
  if (const auto* dim = std::get_if<Dim>(&value)) return mentions(*dim, symbol);
  const auto* shape = std::get_if<Shape>(&value);
  return shape != nullptr && mentions(*shape, symbol);
}

}  // namespace

std::string symbol_shown_by(const Dim& size) {
  if (size.is_constant()) return {};
  const std::vector<std::string> names = size.symbols();
  return names.size() == 1 && to_string(size) == names[0] ? names[0] : std::string();
}

std::string symbol_given_by(const Node& node) {
  if (node.op->role != Role::dimension) return {};
  return node.attributes.get<std::string>("symbol");
}

std::set<std::string> symbols_given_in(const Block& block) {
  std::set<std::string> symbols;
  for_each_node(block, [&](const Node& node) {
    if (std::string symbol = symbol_given_by(node); !symbol.empty())
      symbols.insert(std::move(symbol));
  });
  return symbols;
}

bool mentions(const Type& type, const std::string& symbol) {
  return mentions(type.shape, symbol) ||
         std::any_of(type.elements.begin(), type.elements.end(),
                     [&](const Type& element) { return mentions(element, symbol); });
}

bool mentions(const Node& node, const std::string& symbol) {
  const auto in_type = [&](const Value* value) { return mentions(value->type, symbol); };
  if (std::any_of(node.outputs.begin(), node.outputs.end(), in_type)) return true;
  for (const auto& [name, value] : node.attributes)
    if (mentions(value, symbol)) return true;
  for (const auto& block : node.blocks) {
    if (std::any_of(block->parameters.begin(), block->parameters.end(), in_type)) return true;
    for (const Node* nested : block->nodes)
      if (mentions(*nested, symbol)) return true;
  }
  return false;
}

bool is_parameterised_by(const Node& node, const std::set<std::string>& symbols) {
  for (const auto& [name, value] : node.attributes)
    for (const std::string& symbol : symbols)
      if (mentions(value, symbol)) return true;
  return false;
}

}  // namespace janus::graph
