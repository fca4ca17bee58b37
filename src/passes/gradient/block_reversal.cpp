// See block_reversal.h.
#include "passes/gradient/block_reversal.h"

#include <algorithm>

#include "graph/copier.h"
#include "graph/op.h"
#include "ops/list.h"

namespace janus::passes {

using graph::Block;
using graph::Node;
using graph::Trait;
using graph::Value;

namespace {

bool is_constant(const Value* value) {
  return value->definition != nullptr && value->definition->op == &op::constant;
}

void substitute(Block& block, const graph::Copier& copies) {
  for (Node* node : block.nodes) {
    for (Value*& input : node->inputs) input = copies[input];
    for (const auto& nested : node->blocks) substitute(*nested, copies);
  }
  for (Value*& result : block.results) result = copies[result];
}

}  // namespace

BlockReversal::BlockReversal(graph::Graph& graph, Node& node, Block& forward,
                             BlockDifferentiator& blocks)
    : graph_(graph),
      forward_(forward),
      backward_(node.add_block()),
      builder_(graph, backward_),
      blocks_(blocks) {}

std::vector<Value*> BlockReversal::run(std::span<Value* const> outputs,
                                       std::span<Value* const> seeds,
                                       std::span<Value* const> targets,
                                       std::span<Value* const> sums) {
  return blocks_.differentiate(builder_, forward_, outputs, seeds, targets, sums);
}

bool BlockReversal::is_inside(const Value& value) const {
  return value.definition != nullptr ? value.definition->parent == &forward_
                                     : value.owner == &forward_;
}

void BlockReversal::find_crossing(const Block& block) {
  const auto use = [&](Value* value) {
    if (is_inside(*value)) crossing_.insert(value);
  };
  for (const Node* node : block.nodes) {
    std::ranges::for_each(node->inputs, use);
    for (const auto& nested : node->blocks) find_crossing(*nested);
  }
  std::ranges::for_each(block.results, use);
}

/// Constants, tensors that are filled with one, and views of what is there anyway.
bool BlockReversal::is_made_again(const Node& node) const {
  if (!node.op->is(Trait::pure) || !node.blocks.empty() || node.op->is(Trait::random) ||
      node.op == &op::state || node.outputs.size() != 1)
    return false;
  if (std::ranges::all_of(node.inputs, is_constant)) return true;
  return node.op->is(Trait::view) && std::ranges::all_of(node.inputs, [&](Value* input) {
           return !is_inside(*input) || crossing_.contains(input) || !input->type.is_tensor();
         });
}

const std::vector<Value*>& BlockReversal::find_saved() {
  find_crossing(backward_);
  // From the last definition to the first: what a view is made of may be added on the way.
  const auto& nodes = forward_.nodes;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    // The backward block needs the sizes that the forward block was run with.
    if ((*node)->op == &op::dimension) {
      make_again(**node);
      continue;
    }
    for (Value* output : (*node)->outputs) {
      if (!crossing_.contains(output)) continue;
      if (is_made_again(**node))
        make_again(**node);
      else
        save(output);
    }
  }
  for (Value* parameter : forward_.parameters)
    if (crossing_.contains(parameter)) save(parameter);
  std::ranges::reverse(saved_);
  std::ranges::reverse(again_);
  return saved_;
}

void BlockReversal::make_again(Node& node) {
  again_.push_back(&node);
  for (Value* input : node.inputs)
    if (is_inside(*input)) crossing_.insert(input);
}

/// Frames may outlive the run, whose pointers to objects must not.
void BlockReversal::save(Value* value) {
  if (value->type.kind == graph::Type::Kind::object)
    throw graph::TypeError("gradient: a backward run would need an object of Python's");
  saved_.push_back(value);
}

Value* BlockReversal::pack() {
  return graph::Builder(graph_, forward_).append(op::frame_pack, saved_)->output();
}

void BlockReversal::connect(Value* frame) {
  std::vector<Node*> nodes;
  std::swap(nodes, backward_.nodes);
  graph::Copier copies(graph::Copier::Unknown::same_value);
  if (!saved_.empty()) {
    std::vector<graph::Type> types;
    for (const Value* value : saved_) types.push_back(value->type);
    const Node* unpack = builder_.append_unchecked(
        op::frame_unpack, std::span<Value* const>(&frame, 1), {}, std::move(types));
    for (size_t i = 0; i < saved_.size(); ++i) {
      unpack->outputs[i]->name = saved_[i]->name;
      copies.set(saved_[i], unpack->outputs[i]);
    }
  }
  for (const Node* node : again_) copies.copy(*node, builder_);
  backward_.nodes.insert(backward_.nodes.end(), nodes.begin(), nodes.end());
  substitute(backward_, copies);
}

}  // namespace janus::passes
