// Through which nodes a gradient can pass at all.
//
// A gradient flows backward from a node's results to those of its operands that are tensors of
// floating or complex dtype. It stops at operators whose derivative is zero by nature
// (Trait::no_gradient), at `detach`, and at values that nothing computes: parameters and `state`.
#pragma once

#include "graph/graph.h"
#include "graph/type.h"

namespace janus::passes {

using graph::carries_gradient;

/// Whether a gradient of a result of `node` can flow on to (some of) its operands.
bool passes_gradient(const graph::Node& node);

}  // namespace janus::passes
