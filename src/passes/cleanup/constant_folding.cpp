// Computes at compile time what does not depend on the run.
//
// Does:       asks each operator's `fold` whether its node has a known value, numbers' arithmetic
//             included.
// Requires:   no composite operators and no `gradient` nodes (a fold would hide a path that a
//             gradient takes).
// Guarantees: a replaced result has the same type and, bit for bit, the same value.
// Must not:   make a result of the graph the same value as an input, a state or another result:
//             they are different tensors for the program (escaping.h).
#include "base/check.h"
#include "graph/rewriter.h"
#include "passes/analysis/escaping.h"
#include "passes/passes.h"

namespace janus::passes {

graph::Graph fold(const graph::Graph& graph) {
  const Escaping escaping(graph);
  graph::Rewriter rewriter(graph);
  rewriter.run([&](const graph::Node& node) {
    if (node.op->fold == nullptr || node.outputs.size() != 1) return false;
    if (escaping.contains(node.output())) return false;
    rewriter.builder().set_span(node.span);
    const std::vector<graph::Value*> inputs = rewriter[node.inputs];
    graph::Value* folded = node.op->fold({rewriter.builder(), node, inputs});
    if (folded == nullptr) return false;
    TORCHJANUS_CHECK(folded->type == node.output()->type, node.op->name, ": folded ",
                     node.output()->type, " to ", folded->type);
    rewriter.replace(node, {folded});
    return true;
  });
  return rewriter.finish();
}

}  // namespace janus::passes
