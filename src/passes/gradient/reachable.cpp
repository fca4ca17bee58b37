// See reachable.h.
#include "passes/gradient/reachable.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "graph/builder.h"
#include "graph/copier.h"
#include "graph/functions.h"
#include "ops/list.h"
#include "passes/gradient/differentiate.h"
#include "passes/lowering/decompose.h"
#include "passes/reach/reachability.h"
#include "passes/structure/captures.h"

namespace janus::passes {

using graph::Node;
using graph::Value;

namespace {

bool passes_gradient_nodes(const Reached& reached) {
  return std::ranges::any_of(reached, [](const Value* value) {
    return value->definition != nullptr && value->definition->op == &op::gradient &&
           passes_gradient(*value->definition);
  });
}

/// Copies what the given values are computed from into a graph of its own.
class Extract {
 public:
  Extract() : graph_("extract"), builder_(graph_) {}

  Value* copy_of(const Value* value) {
    std::vector<const Value*> pending = {value};
    while (!pending.empty()) {
      const Value* next = pending.back();
      const Node* node = next->definition;
      if (copies_.has(next)) {
        pending.pop_back();
      } else if (node == nullptr) {
        copies_.set(next, builder_.input(next->type, next->name));
      } else {
        const size_t before = pending.size();
        for (const Value* operand : operands(*node))
          if (!copies_.has(operand)) pending.push_back(operand);
        if (pending.size() == before) copy(*node);
      }
    }
    return copies_.copy_of(value);
  }

  graph::Graph take() { return std::move(graph_); }

 private:
  /// With the functions that it runs. What those use from outside has been copied: it is among the
  /// node's operands.
  void copy(const Node& node) {
    for (const Node* function : graph::functions_run_by(node))
      if (functions_.insert(function).second) copies_.copy(*function, builder_);
    copies_.copy(node, builder_);
  }

  graph::Graph graph_;
  graph::Builder builder_;
  graph::Copier copies_{graph::Copier::Unknown::error};
  std::unordered_set<const Node*> functions_;
};

/// reachable() on a copy in which `gradient` nodes are expanded. Throws TypeError if they can't be.
std::vector<bool> reachable_when_expanded(std::span<Value* const> outputs,
                                          std::span<Value* const> targets, Paths paths) {
  Extract extract;
  std::vector<Value*> values;
  for (const Value* output : outputs) values.push_back(extract.copy_of(output));
  for (const Value* target : targets) values.push_back(extract.copy_of(target));
  graph::Graph whole = extract.take();
  whole.body().results = values;
  const graph::Graph expanded = differentiate(decompose(whole));
  const Reached reached = reached_from(expanded.results().first(outputs.size()), paths);
  std::vector<bool> result;
  for (Value* target : expanded.results().subspan(outputs.size()))
    result.push_back(reached.contains(target));
  return result;
}

}  // namespace

std::vector<Value*> differentiable_leaves(std::span<Value* const> outputs) {
  std::vector<Value*> leaves;
  for (Value* value : reached_from(outputs, Paths::any))
    if (value->definition == nullptr || !passes_gradient(*value->definition))
      leaves.push_back(value);
  std::ranges::sort(leaves, {}, &Value::id);
  const std::vector<bool> is_reached = reachable(outputs, leaves);
  std::vector<Value*> result;
  for (size_t i = 0; i < leaves.size(); ++i)
    if (is_reached[i]) result.push_back(leaves[i]);
  return result;
}

std::vector<bool> reachable(std::span<Value* const> outputs, std::span<Value* const> targets,
                            Paths paths) {
  const Reached reached = reached_from(outputs, paths);
  if (passes_gradient_nodes(reached)) {
    try {
      return reachable_when_expanded(outputs, targets, paths);
    } catch (const graph::TypeError&) {
      // No gradient rule: what may be reached counts as reached.
    }
  }
  std::vector<bool> result;
  for (Value* target : targets) result.push_back(reached.contains(target));
  return result;
}

}  // namespace janus::passes
