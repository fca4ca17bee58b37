// See captures.h.
#include "passes/structure/captures.h"

#include <algorithm>
#include <unordered_set>

#include "graph/functions.h"
#include "ops/list.h"

namespace janus::passes {

using graph::Node;
using graph::Value;

namespace {

/// Adds to `found` the values that the nodes of `block` use, or that it gives, from outside of
/// `inside` (which starts with the blocks around and collects what is defined on the way).
void collect_outer_values(const graph::Block& block, std::unordered_set<const Value*>& inside,
                          std::vector<Value*>& found) {
  inside.insert(block.parameters.begin(), block.parameters.end());
  const auto use = [&](Value* value) {
    if (inside.insert(value).second) found.push_back(value);
  };
  for (const Node* node : block.nodes) {
    std::ranges::for_each(node->inputs, use);
    for (const auto& nested : node->blocks) collect_outer_values(*nested, inside, found);
    inside.insert(node->outputs.begin(), node->outputs.end());
  }
  std::ranges::for_each(block.results, use);
}

/// The same for the node's blocks and the functions that it runs.
void collect_outer_values(const Node& node, std::unordered_set<const Value*>& inside,
                          std::vector<Value*>& found) {
  for (const auto& block : node.blocks) collect_outer_values(*block, inside, found);
  for (const Node* function : graph::functions_run_by(node))
    collect_outer_values(*function->blocks.front(), inside, found);
}

}  // namespace

std::vector<Value*> operands(const Node& node) {
  std::vector<Value*> result = node.inputs;
  if (node.blocks.empty() && node.op != &op::call) return result;
  std::unordered_set<const Value*> inside(result.begin(), result.end());
  collect_outer_values(node, inside, result);
  return result;
}

std::vector<Value*> outer_values(const Node& node) {
  std::vector<Value*> result;
  std::unordered_set<const Value*> inside;
  collect_outer_values(node, inside, result);
  return result;
}

}  // namespace janus::passes
