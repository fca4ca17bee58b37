// The reference implementations of operators without a scalar program, for graph/interpreter.h.
// Simple loops; sums are in double. Views, reductions, matrix products, softmax and creation are in
// reference.cpp, the others in files of their own (reference_functions.h).
#pragma once

#include "graph/interpreter.h"

namespace janus::ops {

/// Elementwise operators by ops/promotion.h, others by these functions.
const graph::Reference& reference();

}  // namespace janus::ops
