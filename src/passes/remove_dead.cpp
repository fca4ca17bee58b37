// Drops nodes whose results nobody needs.
//
// Does:       keeps what the results, the effects and the guards depend on.
// Requires:   nothing.
// Guarantees: every pure node that is left is needed.
// Must not:   drop a node that writes, may fail (the program would have raised) or draws random
//             numbers (the generator would be left in another state), nor a block that holds one.
#include <algorithm>
#include <vector>

#include "graph/rewriter.h"
#include "passes/passes.h"

namespace janus::passes {
namespace {

using graph::Node;
using graph::Trait;
using graph::Value;

class Liveness {
 public:
  explicit Liveness(const graph::Graph& graph) : live_(graph.value_count()) { visit(graph.body()); }

  bool is_live(const Node& node) const {
    return has_effect(node) ||
           std::ranges::any_of(node.outputs, [&](const Value* out) { return live_[out->id]; });
  }

 private:
  static bool has_effect(const Node& node) {
    const Trait effects = graph::effects(node);
    if (has(effects, Trait::random | Trait::writes_heap | Trait::writes_state)) return true;
    // What is pure and fails does so on integers that do not fit: Python's would have.
    return has(effects, Trait::may_fail) && !node.op->is(Trait::pure);
  }

  void use(std::span<Value* const> values) {
    for (const Value* value : values) live_[value->id] = true;
  }

  /// From the last node to the first: all uses of a value come before its definition.
  void visit(const graph::Block& block) {
    use(block.results);
    for (auto node = block.nodes.rbegin(); node != block.nodes.rend(); ++node) {
      if (!is_live(**node)) continue;
      use((*node)->inputs);
      for (const auto& nested : (*node)->blocks) visit(*nested);
    }
  }

  std::vector<bool> live_;  // by Value::id
};

}  // namespace

graph::Graph remove_dead(const graph::Graph& graph) {
  const Liveness liveness(graph);
  graph::Rewriter rewriter(graph);
  rewriter.run([&](const Node& node) { return !liveness.is_live(node); });
  return rewriter.finish();
}

}  // namespace janus::passes
