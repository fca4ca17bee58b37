// See reachability.h.
#include "passes/reach/reachability.h"

#include <algorithm>

#include "ops/list.h"
#include "passes/reach/composite_reach.h"
#include "passes/reach/control_reach.h"
#include "passes/reach/list_reach.h"
#include "passes/reach/search.h"
#include "passes/structure/captures.h"

namespace janus::passes {

using graph::Node;
using graph::Value;

namespace {

class WholeSearch final : public Search {
 public:
  Reached reached_from(std::span<Value* const> outputs, Paths paths, const graph::Block* within,
                       const FunctionReach* functions) const override {
    return passes::reached_from(outputs, paths, within, functions);
  }
};
const WholeSearch kSearch{};

}  // namespace

std::vector<Value*> operands_reached(const Value& output, Paths paths,
                                     const FunctionReach* functions) {
  const Node& node = *output.definition;
  if (node.op == &op::if_ || node.op == &op::while_ || node.op == &op::call)
    return reached_through(output, paths, kSearch, functions);
  if (paths != Paths::any && is_part_of_list(output)) {
    if (paths == Paths::certain_but_for_lists) return {};
    return is_taken_in_turn(node) ? operands(node)
                                  : reached_by_each_element(*node.inputs[0], kSearch, functions);
  }
  if (!node.op->is(graph::Trait::composite) || node.inputs.size() < 2) return operands(node);
  const std::vector<bool> reached = inputs_reached_by_parts(output, paths, kSearch);
  std::vector<Value*> result;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (reached[i]) result.push_back(node.inputs[i]);
  return result;
}

Reached reached_from(std::span<Value* const> outputs, Paths paths, const graph::Block* within,
                     const FunctionReach* functions) {
  Reached seen;
  std::vector<Value*> pending;
  const auto reach = [&](Value* value) {
    if (carries_gradient(value->type) && seen.insert(value).second) pending.push_back(value);
  };
  std::ranges::for_each(outputs, reach);
  while (!pending.empty()) {
    const Value* value = pending.back();
    const Node* node = value->definition;
    pending.pop_back();
    if (node == nullptr || (within != nullptr && node->parent != within)) continue;
    if (passes_gradient(*node))
      std::ranges::for_each(operands_reached(*value, paths, functions), reach);
  }
  return seen;
}

}  // namespace janus::passes
