// See effects.h.
#include "passes/effects.h"

#include <algorithm>

#include "graph/op.h"
#include "ops/list.h"

namespace janus::passes {

using graph::Node;
using graph::Trait;

namespace {

bool holds_guard(const Node& node) {
  if (node.op == &op::guard) return true;
  return std::ranges::any_of(node.blocks, [](const auto& block) {
    return std::ranges::any_of(block->nodes, [](const Node* inner) { return holds_guard(*inner); });
  });
}

}  // namespace

std::vector<Effect> ordering_effects(const Node& node) {
  const Trait effects = graph::effects(node);
  std::vector<Effect> result;
  if (has(effects, Trait::random)) result.push_back(Effect::random);
  if (has(effects, Trait::reads_heap | Trait::writes_heap)) result.push_back(Effect::heap);
  if (has(effects, Trait::writes_state)) result.push_back(Effect::state);
  if (holds_guard(node)) result.push_back(Effect::guard);
  return result;
}

}  // namespace janus::passes
