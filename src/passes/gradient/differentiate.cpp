// See differentiate.h.
#include "passes/gradient/differentiate.h"

#include <span>
#include <vector>

#include "base/check.h"
#include "graph/rewriter.h"
#include "ops/list.h"
#include "passes/gradient/backpropagate.h"

namespace janus::passes {
namespace {

using graph::Node;
using graph::Value;

std::vector<Value*> expand(graph::Builder& builder, const Node& node,
                           std::span<Value* const> operands) {
  const auto count = static_cast<size_t>(node.attributes.get<int64_t>("outputs"));
  TORCHJANUS_CHECK(operands.size() == 2 * count + node.outputs.size(),
                   "gradient: ", operands.size(), " operands for ", count, " outputs and ",
                   node.outputs.size(), " targets");
  const auto targets = operands.subspan(2 * count);
  std::vector<Value*> gradients =
      backpropagate(builder, operands.first(count), operands.subspan(count, count), targets);
  for (size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i] == nullptr) gradients[i] = filled(builder, targets[i]->type, 0);
  if (!node.attributes.get_or<bool>("create_graph", false))
    for (Value*& gradient : gradients) gradient = op::detach(builder, {gradient});
  return gradients;
}

}  // namespace

graph::Graph differentiate(const graph::Graph& graph) {
  graph::Rewriter rewriter(graph);
  rewriter.run([&](const Node& node) {
    if (node.op != &op::gradient) return false;
    rewriter.builder().set_span(node.span);
    const std::vector<Value*> operands = rewriter[node.inputs];
    rewriter.replace(node, expand(rewriter.builder(), node, operands));
    return true;
  });
  return rewriter.finish();
}

}  // namespace janus::passes
