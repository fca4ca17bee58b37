// Which operators can't fail once they have run on operands of the same sizes.
#pragma once

#include "graph/graph.h"

namespace janus::passes {

/// Whether only a lack of memory can make ATen's operator throw on operands of the sizes, strides
/// and element types on which it has run before: it looks at no element to decide that (as
/// `embedding` does at its indices).
bool fails_only_for_memory(const graph::Node& node);

/// Whether nothing that the operands hold makes the operator raise, by the kinds of their elements
/// alone: integers may be divided by zero, or have negative exponents. `integers_in`,
/// `integers_out`: whether it takes or gives tensors of integers.
bool is_safe_for_elements(const graph::OpDef& op, bool integers_in, bool integers_out);

/// Whether the run can't be given up at the node, wherever it stands in the body: it is no guard,
/// computes no number that may not fit, runs no blocks, and fails_only_for_memory() holds, or it
/// draws random numbers by constants.
bool is_certain(const graph::Node& node);

/// What stands behind the first communication with other processes, and may end the run, or
/// communicates within a block; null: nothing.
const graph::Node* uncertain_behind_communication(const graph::Graph& graph);

}  // namespace janus::passes
