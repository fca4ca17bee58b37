// Which operators can't fail once they have run on operands of the same sizes.
#pragma once

#include "graph/graph.h"

namespace janus::torch {

/// Whether only a lack of memory can make ATen's operator throw on operands of the sizes, strides
/// and element types on which it has run before: it looks at no element to decide that (as
/// `embedding` does at its indices).
bool fails_only_for_memory(const graph::Node& node);

}  // namespace janus::torch
