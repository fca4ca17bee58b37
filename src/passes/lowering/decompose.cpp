// See decompose.h.
#include "passes/lowering/decompose.h"

#include <vector>

#include "base/check.h"
#include "base/policy.h"
#include "graph/rewriter.h"

namespace janus::passes {
namespace {

using graph::Node;

bool is_composite(const Node& node) { return node.op->is(graph::Trait::composite); }

bool has_composite(const graph::Graph& graph) {
  bool found = false;
  graph::for_each_node(graph.body(), [&](const Node& node) { found |= is_composite(node); });
  return found;
}

graph::Graph decompose_once(const graph::Graph& graph) {
  graph::Rewriter rewriter(graph);
  rewriter.run([&](const Node& node) {
    if (!is_composite(node)) return false;
    TORCHJANUS_CHECK(node.op->decompose != nullptr, node.op->name,
                     ": composite, but it has no decomposition");
    rewriter.builder().set_span(node.span);
    const std::vector<graph::Value*> inputs = rewriter[node.inputs];
    const auto parts = node.op->decompose({rewriter.builder(), node, inputs});
    TORCHJANUS_CHECK(parts.size() == node.outputs.size(), node.op->name, ": decomposed into ",
                     parts.size(), " results instead of ", node.outputs.size());
    for (size_t i = 0; i < parts.size(); ++i)
      TORCHJANUS_CHECK(parts[i]->type == node.outputs[i]->type, node.op->name, ": result ", i,
                       " is ", node.outputs[i]->type, ", decomposed ", parts[i]->type);
    rewriter.replace(node, parts);
    return true;
  });
  return rewriter.finish();
}

}  // namespace

graph::Graph decompose(const graph::Graph& graph) {
  graph::Graph result = decompose_once(graph);
  for (int depth = 1; has_composite(result); ++depth) {
    TORCHJANUS_CHECK(depth < policy::kDeepestDecomposition,
                     "composite operators that decompose into themselves");
    result = decompose_once(result);
  }
  return result;
}

}  // namespace janus::passes
