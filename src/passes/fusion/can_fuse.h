// The question that fusion asks of the kernel compiler.
#pragma once

#include <functional>

#include "graph/graph.h"

namespace janus::passes {

/// Whether a fused kernel can compute this node (operator and dtypes); kernels/ knows the answer.
using CanFuse = std::function<bool(const graph::Node&)>;

}  // namespace janus::passes
