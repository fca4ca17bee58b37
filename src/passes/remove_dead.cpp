// Drops nodes whose results nobody needs, and results of nodes with blocks that nobody needs.
//
// Does:       keeps what the results, the effects and the guards depend on.
// Requires:   nothing.
// Guarantees: every pure node that is left is needed.
// Must not:   drop a node that writes, may raise (raising.h: the program would have) or draws
// random
//             numbers (the generator would be left in another state), nor a block that holds one.
#include "graph/rewriter.h"
#include "passes/control_results.h"
#include "passes/copied.h"
#include "passes/liveness.h"
#include "passes/passes.h"

namespace janus::passes {

graph::Graph remove_dead(const graph::Graph& graph) {
  graph::Graph trimmed = copied(graph);
  drop_dead_results(trimmed);
  const Liveness liveness(trimmed);
  graph::Rewriter rewriter(trimmed);
  rewriter.run([&](const graph::Node& node) { return !liveness.is_live(node); });
  return rewriter.finish();
}

}  // namespace janus::passes
