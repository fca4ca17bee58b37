// See loop_invariant_code_motion.h.
#include "passes/cleanup/loop_invariant_code_motion.h"

#include <algorithm>

#include "graph/op.h"
#include "graph/run_time_symbols.h"
#include "ops/list.h"
#include "passes/structure/contains.h"
#include "passes/structure/copied.h"

namespace janus::passes {

using graph::Block;
using graph::Node;
using graph::Trait;
using graph::Value;

namespace {

/// `sizes`: those that each iteration has of its own.
bool can_be_moved(const Node& node, const Block& block, const std::set<std::string>& sizes) {
  if (!node.op->is(Trait::pure) || !node.blocks.empty()) return false;
  if (node.op->is(Trait::random) || node.op->is(Trait::control)) return false;
  if (std::ranges::any_of(sizes, [&](const auto& size) { return graph::mentions(node, size); }))
    return false;
  return std::ranges::none_of(node.inputs,
                              [&](const Value* input) { return is_inside(*input, block); });
}

void move_loop_invariants(Block& block) {
  for (size_t i = 0; i < block.nodes.size(); ++i) {
    const Node& node = *block.nodes[i];
    for (const auto& nested : node.blocks) move_loop_invariants(*nested);
    const auto inside = [](const auto& nested) { return differentiates(*nested); };
    if (node.op == &op::while_ && std::ranges::none_of(node.blocks, inside))
      i += move_in_front(block, i);
  }
}

}  // namespace

bool is_inside(const Value& value, const Block& block) {
  const Block* around = value.definition != nullptr ? value.definition->parent : value.owner;
  while (around != nullptr && around != &block)
    around = around->parent == nullptr ? nullptr : around->parent->parent;
  return around != nullptr;
}

bool differentiates(const Block& block) {
  bool found = false;
  graph::for_each_node(block, [&](const Node& node) { found |= node.op == &op::gradient; });
  return found;
}

size_t move_in_front(Block& block, size_t position) {
  const Node& repeated = *block.nodes[position];
  std::vector<Node*> moved;
  for (const auto& nested : repeated.blocks) {
    const std::set<std::string> sizes = graph::symbols_given_in(*nested);
    std::erase_if(nested->nodes, [&](Node* node) {
      if (!can_be_moved(*node, *nested, sizes)) return false;
      node->parent = &block;
      moved.push_back(node);
      return true;
    });
  }
  block.nodes.insert(block.nodes.begin() + static_cast<std::ptrdiff_t>(position), moved.begin(),
                     moved.end());
  return moved.size();
}

graph::Graph move_loop_invariants(graph::Graph graph) {
  if (!contains(graph, op::while_)) return graph;
  move_loop_invariants(graph.body());
  return copied(graph);
}

}  // namespace janus::passes
