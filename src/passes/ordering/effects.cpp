// See effects.h.
#include "passes/ordering/effects.h"

#include <algorithm>

#include "graph/functions.h"
#include "graph/node_effects.h"
#include "graph/op.h"
#include "ops/collectives.h"
#include "ops/list.h"

namespace janus::passes {

using graph::Node;
using graph::Trait;

namespace {

/// Whether the node is a guard, or one runs when it does.
bool holds_guard(const Node& node) {
  bool found = false;
  graph::for_each_run(node, [&](const Node& each) { found |= each.op == &op::guard; });
  return found;
}

}  // namespace

std::vector<Effect> ordering_effects(const Node& node) {
  const Trait effects = graph::effects(node);
  std::vector<Effect> result;
  if (has(effects, Trait::random)) result.push_back(Effect::random);
  if (has(effects, Trait::reads_heap | Trait::writes_heap)) result.push_back(Effect::heap);
  if (has(effects, Trait::writes_state)) result.push_back(Effect::state);
  if (holds_guard(node)) result.push_back(Effect::guard);
  if (ops::begins_collective(node)) result.push_back(Effect::communication);
  return result;
}

}  // namespace janus::passes
