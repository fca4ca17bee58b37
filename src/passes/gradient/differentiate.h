// Reverse-mode automatic differentiation: `gradient` nodes become the computation of the gradient.
//
//   %d_w, %d_b = gradient %loss, %seed, %w, %b {outputs=1, targets=2} : f32[10,784], f32[10]
//
// Operands: `outputs` values, a seed for each (a none-typed value stands for one), then the
// targets. Results: for each target its gradient, zeros where no output depends on it.
//
// Does:       reverse mode over the nodes between targets and outputs (backpropagate.h), in program
//             order of the `gradient` nodes, so that one may differentiate what an earlier one
//             gave.
// Requires:   no composite operators.
// Guarantees: no `gradient` node is left. Gradients without {create_graph=true} are detached: a
//             later gradient does not flow through them.
// Must not:   give a wrong gradient: what has no rule throws TypeError.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

graph::Graph differentiate(const graph::Graph& graph);

}  // namespace janus::passes
