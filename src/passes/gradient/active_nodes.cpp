// See active_nodes.h.
#include "passes/gradient/active_nodes.h"

#include <algorithm>
#include <unordered_set>

#include "passes/reach/gradient_edges.h"
#include "passes/structure/captures.h"

namespace janus::passes {

using graph::Block;
using graph::Node;
using graph::Value;

ActiveNodes::ActiveNodes(size_t value_count, std::span<Value* const> outputs,
                         std::span<Value* const> targets, const Block* within)
    : depends_(value_count) {
  collect(outputs, within);
  sort(within);
  for (const Value* target : targets) depends_[target->id] = true;
  for (const Node* node : nodes_) mark(*node);
  std::erase_if(nodes_, [&](const Node* node) { return !hands_on(*node); });
}

/// All nodes that a gradient of the outputs can come to.
void ActiveNodes::collect(std::span<Value* const> outputs, const Block* within) {
  std::unordered_set<const Node*> seen;
  std::vector<Value*> pending(outputs.begin(), outputs.end());
  while (!pending.empty()) {
    const Value* value = pending.back();
    pending.pop_back();
    Node* node = value->definition;
    if (node == nullptr || (within != nullptr && node->parent != within)) continue;
    if (!carries_gradient(value->type) || !passes_gradient(*node)) continue;
    if (!seen.insert(node).second) continue;
    nodes_.push_back(node);
    for (Value* operand : operands(*node)) pending.push_back(operand);
  }
}

/// Into program order. Values are numbered as they are made; in blocks that differentiation itself
/// builds, what was put in front later has larger numbers.
void ActiveNodes::sort(const Block* within) {
  if (within == nullptr) {
    std::ranges::sort(nodes_, {}, [](const Node* node) { return node->output()->id; });
    return;
  }
  const std::unordered_set<const Node*> found(nodes_.begin(), nodes_.end());
  nodes_.clear();
  for (Node* node : within->nodes)
    if (found.contains(node)) nodes_.push_back(node);
}

bool ActiveNodes::hands_on(const Node& node) const {
  return std::ranges::any_of(operands(node), [&](const Value* operand) {
    return carries_gradient(operand->type) && depends(operand);
  });
}

void ActiveNodes::mark(const Node& node) {
  if (!hands_on(node)) return;
  for (const Value* output : node.outputs)
    if (carries_gradient(output->type)) depends_[output->id] = true;
}

}  // namespace janus::passes
