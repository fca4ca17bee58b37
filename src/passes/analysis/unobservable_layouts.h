// Which values a program can't look at: where they lie is nobody's business.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace janus::passes {

/// By Value::id. Only operators look at such a value that compute new tensors from it.
std::vector<bool> find_hidden(const graph::Graph& graph);

}  // namespace janus::passes
