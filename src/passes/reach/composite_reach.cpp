// See composite_reach.h.
#include "passes/reach/composite_reach.h"

#include <algorithm>
#include <unordered_map>

#include "base/policy.h"

#include "graph/builder.h"
#include "ops/list.h"
#include "passes/lowering/decompose.h"
#include "passes/structure/graph_of_node.h"

namespace janus::passes {

using graph::Node;
using graph::Value;

namespace {

/// All that decides what a node's parts are, and the answer.
struct Known {
  size_t output = 0;
  Paths paths = Paths::any;
  graph::Attributes attributes;
  std::vector<graph::Type> inputs;
  std::vector<graph::Attributes> constants;  ///< of operands; empty for others
  std::vector<bool> reached;

  bool is_about(const Node& node, size_t index, Paths which) const {
    if (output != index || paths != which || inputs.size() != node.inputs.size()) return false;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!(inputs[i] == node.inputs[i]->type)) return false;
    if (!(attributes == node.attributes)) return false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Node* value = constant_behind(*node.inputs[i]);
      if (!(constants[i] == (value == nullptr ? graph::Attributes() : value->attributes)))
        return false;
    }
    return true;
  }
};

std::vector<bool> find(const Node& node, size_t output, Paths paths, const Search& search) {
  try {
    const graph::Graph parts = decompose(graph_of(node));
    const Reached reached =
        search.reached_from(parts.results().subspan(output, 1), paths, nullptr, nullptr);
    std::vector<bool> result;
    for (Value* input : parts.inputs()) result.push_back(reached.contains(input));
    return result;
  } catch (const graph::TypeError&) {
    return std::vector<bool>(node.inputs.size(), true);  // what may be reached counts as reached
  }
}

}  // namespace

std::vector<bool> inputs_reached_by_parts(const Value& output, Paths paths, const Search& search) {
  thread_local std::unordered_map<const graph::OpDef*, std::vector<Known>> memory;
  const Node& node = *output.definition;
  const auto index =
      static_cast<size_t>(std::ranges::find(node.outputs, &output) - node.outputs.begin());
  for (const Known& known : memory[node.op])
    if (known.is_about(node, index, paths)) return known.reached;
  Known known{.output = index, .paths = paths, .attributes = node.attributes};
  for (const Value* input : node.inputs) {
    known.inputs.push_back(input->type);
    const Node* value = constant_behind(*input);
    known.constants.push_back(value == nullptr ? graph::Attributes() : value->attributes);
  }
  known.reached = find(node, index, paths, search);
  std::vector<Known>& all = memory[node.op];  // what finding out has asked about is there as well
  if (all.size() >= policy::kMostPartsKnown) all.clear();
  all.push_back(std::move(known));
  return all.back().reached;
}

}  // namespace janus::passes
