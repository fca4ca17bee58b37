// See liveness.h.
#include "passes/analysis/liveness.h"

#include <algorithm>

#include "graph/functions.h"
#include "graph/node_effects.h"
#include "graph/op.h"
#include "ops/list.h"
#include "passes/analysis/may_raise.h"

namespace janus::passes {

using graph::Block;
using graph::Node;
using graph::Trait;
using graph::Value;

namespace {

/// Of a node without regard to its blocks and to what it calls.
bool acts(const Node& node) {
  if (!node.blocks.empty() || node.op == &op::call) return false;
  const Trait effects = graph::effects(node);
  if (has(effects, Trait::random | Trait::writes_heap | Trait::writes_state | Trait::communicates))
    return true;
  // What else is pure and fails does so on integers that do not fit: Python's would have.
  return may_raise(node) || (has(effects, Trait::may_fail) && !node.op->is(Trait::pure));
}

bool acts(const Block& block) {
  bool found = false;
  graph::for_each_node(block, [&](const Node& node) { found |= acts(node); });
  return found;
}

bool has_effect(const Node& node) {
  if (node.op == &op::function) return false;
  return acts(node) ||
         std::ranges::any_of(node.blocks, [](const auto& block) { return acts(*block); }) ||
         std::ranges::any_of(graph::functions_run_by(node),
                             [](const Node* function) { return acts(*function->blocks.front()); });
}

}  // namespace

/// Functions stand in front of their calls and call each other, so the walk is repeated until it
/// finds nothing new.
Liveness::Liveness(const graph::Graph& graph) : live_(graph.value_count()) {
  for (const Value* result : graph.results()) use(result);
  do {
    changed_ = false;
    visit(graph.body());
  } while (changed_ && !called_.empty());
}

void Liveness::use(const Value* value) {
  changed_ |= !live_[value->id];
  live_[value->id] = true;
}

bool Liveness::is_result_live(const Node& function, size_t index) const {
  const auto found = called_.find(&function);
  return found != called_.end() && found->second[index];
}

bool Liveness::is_live(const Node& node) const {
  if (node.op == &op::function) return called_.contains(&node);
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
    if ((*node)->op == &op::call) {
      visit_call(**node);
      continue;
    }
    if ((*node)->op == &op::function) {
      visit_function(**node);
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

void Liveness::visit_call(const Node& call) {
  const Node* function = graph::callee(call);
  if (function == nullptr) {
    for (const Value* input : call.inputs) use(input);
    return;
  }
  const auto [place, is_new] = called_.try_emplace(function);
  std::vector<bool>& needed = place->second;
  changed_ |= is_new;
  needed.resize(call.outputs.size());
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (!is_live(call.outputs[i]) || needed[i]) continue;
    needed[i] = changed_ = true;
  }
  const auto& parameters = function->blocks.front()->parameters;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (is_live(parameters[i])) use(call.inputs[i]);
}

void Liveness::visit_function(const Node& function) {
  const Block& block = *function.blocks.front();
  for (size_t i = 0; i < block.results.size(); ++i)
    if (is_result_live(function, i)) use(block.results[i]);
  visit(block);
}

}  // namespace janus::passes
