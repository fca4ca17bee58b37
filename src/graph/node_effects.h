// What a node does beside giving results, and whether it may go if nobody uses those.
#pragma once

#include "graph/graph.h"
#include "graph/op.h"

namespace janus::graph {

/// The effects of this very node: those of its operator (an opaque operator says more exactly in
/// its attributes), of the nodes in its blocks and of the functions that calls among them run. A
/// `function` node has none itself. See effect_traits.
Trait effects(const Node& node);

/// Whether a node whose results nobody uses may go: operators that are pure (also those that may
/// fail: an overflow that nobody sees is none), and an `if` or `fused` with nothing else inside.
bool can_drop(const Node& node);

}  // namespace janus::graph
