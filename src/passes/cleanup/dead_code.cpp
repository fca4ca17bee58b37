// See dead_code.h.
#include "passes/cleanup/dead_code.h"

#include <algorithm>
#include <set>
#include <string>

#include "graph/rewriter.h"
#include "graph/run_time_symbols.h"
#include "ops/list.h"
#include "passes/analysis/liveness.h"
#include "passes/cleanup/dead_results.h"
#include "passes/structure/copied.h"

namespace janus::passes {
namespace {

/// Which sizes are known by tensors that stay.
class KnownSizes {
 public:
  KnownSizes(const graph::Graph& graph, const Liveness& liveness)
      : graph_(graph), liveness_(liveness) {
    for (const graph::Value* input : graph.inputs()) show(input->type);
    for (const graph::Node* node : graph.body().nodes)
      if (node->op == &op::state && liveness.is_live(*node)) show(node->output()->type);
  }

  /// Whether a size that something needs is known by this node alone, which nobody needs otherwise.
  bool need(const graph::Node& node) {
    if (node.op != &op::state) return false;
    const bool is_needed = std::ranges::any_of(node.output()->type.shape, [&](const auto& size) {
      const std::string symbol = graph::symbol_shown_by(size);
      return !symbol.empty() && !shown_.contains(symbol) && is_used(symbol);
    });
    if (is_needed) show(node.output()->type);
    return is_needed;
  }

 private:
  void show(const graph::Type& type) {
    for (const graph::Dim& size : type.shape) shown_.insert(graph::symbol_shown_by(size));
  }
  bool is_used(const std::string& symbol) const {
    return std::ranges::any_of(graph_.body().nodes, [&](const graph::Node* node) {
      return liveness_.is_live(*node) && graph::mentions(*node, symbol);
    });
  }

  const graph::Graph& graph_;
  const Liveness& liveness_;
  std::set<std::string> shown_;
};

}  // namespace

graph::Graph remove_dead_code(graph::Graph graph) {
  drop_dead_results(graph);
  const Liveness liveness(graph);
  KnownSizes known(graph, liveness);
  graph::Rewriter rewriter(graph);
  rewriter.run(
      [&](const graph::Node& node) { return !liveness.is_live(node) && !known.need(node); });
  return rewriter.finish();
}

}  // namespace janus::passes
