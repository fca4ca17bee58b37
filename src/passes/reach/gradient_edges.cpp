// See gradient_edges.h.
#include "passes/reach/gradient_edges.h"

#include <algorithm>
#include <span>

#include "ops/list.h"
#include "passes/structure/captures.h"

namespace janus::passes {

using graph::Node;
using graph::Value;

namespace {

bool any_carries_gradient(std::span<Value* const> values) {
  return std::ranges::any_of(values, [](const Value* v) { return carries_gradient(v->type); });
}

}  // namespace

bool passes_gradient(const Node& node) {
  if (node.op->is(graph::Trait::no_gradient) || node.op == &op::detach) return false;
  if (node.op == &op::gradient && !node.attributes.get_or<bool>("create_graph", false))
    return false;
  if (!any_carries_gradient(node.outputs)) return false;
  if (any_carries_gradient(node.inputs)) return true;
  return any_carries_gradient(outer_values(node));
}

}  // namespace janus::passes
