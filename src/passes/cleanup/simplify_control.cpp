// See simplify_control.h.
#include "passes/cleanup/simplify_control.h"

#include <algorithm>
#include <unordered_map>

#include "graph/constant.h"
#include "graph/op.h"
#include "ops/list.h"
#include "passes/cleanup/loop_invariant_code_motion.h"
#include "passes/structure/copied.h"

namespace janus::passes {
namespace {

using graph::Block;
using graph::Node;
using graph::Trait;
using graph::Value;

/// Edits a pass's own copy of a graph, from the first node to the last.
class Simplifier {
 public:
  void run(Block& block) {
    for (size_t i = 0; i < block.nodes.size(); ++i) {
      Node& node = *block.nodes[i];
      for (Value*& input : node.inputs) input = now(input);
      if (node.op == &op::if_ && put_side_in_place(block, i)) {
        --i;
        continue;
      }
      if (node.op == &op::while_) replace_invariants(node);
      if (!node.op->is(Trait::control)) {
        take_apart(node);
        continue;
      }
      for (const auto& nested : node.blocks) run(*nested);
      if (node.op == &op::if_) replace_equals(node);
      if (node.op == &op::while_ || node.op == &op::function) i += move_in_front(block, i);
    }
    for (Value*& result : block.results) result = now(result);
  }

 private:
  Value* now(Value* value) const {
    for (auto found = now_.find(value); found != now_.end(); found = now_.find(value))
      value = found->second;
    return value;
  }

  /// The nodes of the side that is taken stand where the `if` stood.
  bool put_side_in_place(Block& block, size_t position) {
    Node& node = *block.nodes[position];
    const graph::AttributeValue* constant = graph::constant_value(node.inputs[0]);
    const bool* taken = constant == nullptr ? nullptr : std::get_if<bool>(constant);
    if (taken == nullptr) return false;
    Block& side = *node.blocks[*taken ? 0 : 1];
    for (Node* inner : side.nodes) inner->parent = &block;
    const auto place = block.nodes.begin() + static_cast<std::ptrdiff_t>(position);
    block.nodes.insert(block.nodes.erase(place), side.nodes.begin(), side.nodes.end());
    for (size_t i = 0; i < node.outputs.size(); ++i) now_[node.outputs[i]] = side.results[i];
    return true;
  }

  /// What the body hands on as it got it is what the loop began with.
  void replace_invariants(Node& loop) {
    for (size_t k = 0; k < loop.inputs.size(); ++k) {
      if (loop.blocks[1]->results[k] != loop.blocks[1]->parameters[k]) continue;
      for (const auto& block : loop.blocks) now_[block->parameters[k]] = loop.inputs[k];
      now_[loop.outputs[k]] = loop.inputs[k];
    }
  }

  void replace_equals(Node& node) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      Value* value = node.blocks[0]->results[i];
      if (value == node.blocks[1]->results[i] && !is_inside(*value, *node.blocks[0]))
        now_[node.outputs[i]] = value;
    }
  }

  void take_apart(const Node& node) {
    if (node.op != &op::frame_unpack && node.op != &op::list_pop) return;
    const Node* made = node.inputs.front()->definition;
    if (made == nullptr) return;
    const bool fits =
        node.op == &op::frame_unpack ? made->op == &op::frame_pack : made->op == &op::list_push;
    const auto same = [](const Value* a, const Value* b) { return a->type == b->type; };
    if (!fits || !std::ranges::equal(made->inputs, node.outputs, same)) return;
    for (size_t i = 0; i < node.outputs.size(); ++i) now_[node.outputs[i]] = made->inputs[i];
  }

  std::unordered_map<const Value*, Value*> now_;  ///< what stands for a value
};

}  // namespace

graph::Graph simplify_control(graph::Graph graph) {
  Simplifier().run(graph.body());
  return copied(graph);
}

}  // namespace janus::passes
