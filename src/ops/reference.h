// The reference implementations of operators without a scalar program, for graph/interpreter.h:
// views, reductions, matrix products, softmax, creation. Simple loops; sums are in double.
#pragma once

#include "graph/interpreter.h"

namespace janus::ops {

/// Elementwise operators by ops/promotion.h, others by the functions of reference.cpp.
const graph::Reference& reference();

}  // namespace janus::ops
