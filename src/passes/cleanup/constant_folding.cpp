// See constant_folding.h.
#include "passes/cleanup/constant_folding.h"

#include "base/check.h"
#include "graph/rewriter.h"
#include "passes/analysis/escaping.h"

namespace janus::passes {

graph::Graph fold_constants(const graph::Graph& graph) {
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
