// See node_effects.h.
#include "graph/node_effects.h"

#include <algorithm>

#include "graph/functions.h"

namespace janus::graph {

namespace {

/// Effects of a node's operator and of the nodes in its blocks, but not of what calls run.
Trait own_effects(const Node& node) {
  Trait result = node.op->traits & effect_traits;
  // An opaque operator draws random numbers only if its attributes say so (ops/structure.cpp).
  if (node.op->role == Role::opaque && !node.attributes.get_or<bool>("_draws", false))
    result = result & ~Trait::random;
  if (is_call(node)) result = result | Trait::may_fail;  // calls may nest too deeply
  for (const auto& block : node.blocks)
    for (const Node* nested : block->nodes) result = result | own_effects(*nested);
  return result;
}

}  // namespace

Trait effects(const Node& node) {
  if (is_function(node)) return Trait::none;
  Trait result = own_effects(node);
  for (const Node* function : functions_run_by(node)) result = result | own_effects(*function);
  return result;
}

bool can_drop(const Node& node) {
  if (node.op->is(Trait::pure)) return true;
  if (!node.op->is(Trait::control) || node.op->role == Role::loop) return false;
  return std::all_of(node.blocks.begin(), node.blocks.end(), [](const auto& block) {
    return std::all_of(block->nodes.begin(), block->nodes.end(),
                       [](const Node* nested) { return can_drop(*nested); });
  });
}

}  // namespace janus::graph
