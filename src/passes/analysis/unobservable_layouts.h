// Values whose layout is unobservable: only operators that compute new tensors use them, so that
// the compiler may choose their strides.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace janus::passes {

/// By Value::id. Only operators look at such a value that compute new tensors from it.
std::vector<bool> find_unobservable(const graph::Graph& graph);

}  // namespace janus::passes
