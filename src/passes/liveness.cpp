// See liveness.h.
#include "passes/liveness.h"

#include <algorithm>

#include "graph/op.h"
#include "ops/list.h"

namespace janus::passes {

using graph::Block;
using graph::Node;
using graph::Trait;
using graph::Value;

namespace {

bool has_effect(const Node& node) {
  const Trait effects = graph::effects(node);
  if (has(effects, Trait::random | Trait::writes_heap | Trait::writes_state)) return true;
  if (!has(effects, Trait::may_fail) || node.op->is(Trait::pure)) return false;
  // What is pure and fails does so on integers that do not fit: Python's would have.
  if (node.blocks.empty()) return true;
  return std::ranges::any_of(node.blocks, [](const auto& block) {
    return std::ranges::any_of(block->nodes,
                               [](const Node* nested) { return has_effect(*nested); });
  });
}

}  // namespace

Liveness::Liveness(const graph::Graph& graph) : live_(graph.value_count()) {
  for (const Value* result : graph.results()) use(result);
  visit(graph.body());
}

bool Liveness::is_live(const Node& node) const {
  return has_effect(node) ||
         std::ranges::any_of(node.outputs, [&](const Value* output) { return is_live(output); });
}

/// From the last node to the first: all uses of a value come before its definition.
void Liveness::visit(const Block& block) {
  for (auto node = block.nodes.rbegin(); node != block.nodes.rend(); ++node) {
    if (!is_live(**node)) continue;
    if ((*node)->op == &op::while_) {
      visit_loop(**node);
      continue;
    }
    for (const Value* input : (*node)->inputs) use(input);
    visit_blocks(**node);
  }
}

void Liveness::visit_blocks(const Node& node) {
  for (const auto& block : node.blocks) {
    for (size_t i = 0; i < block->results.size(); ++i)
      if (node.op != &op::if_ || is_live(node.outputs[i])) use(block->results[i]);
    visit(*block);
  }
}

/// A loop that goes round needs its condition, and whatever that and the values behind it lead to.
void Liveness::visit_loop(const Node& loop) {
  const Block &condition = *loop.blocks[0], &body = *loop.blocks[1];
  use(condition.results[0]);
  const auto is_needed = [&](size_t k) {
    return is_live(loop.outputs[k]) || is_live(condition.parameters[k]) ||
           is_live(body.parameters[k]);
  };
  for (size_t before = SIZE_MAX, now = 0; now != before;) {
    before = now;
    visit(condition);
    for (size_t k = 0; k < loop.inputs.size(); ++k)
      if (is_needed(k)) use(body.results[k]);
    visit(body);
    now = 0;
    for (size_t k = 0; k < loop.inputs.size(); ++k) now += is_needed(k) ? 1 : 0;
  }
  for (size_t k = 0; k < loop.inputs.size(); ++k)
    if (is_needed(k)) use(loop.inputs[k]);
}

}  // namespace janus::passes
