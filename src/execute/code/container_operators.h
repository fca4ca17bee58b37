// Which operators the executor computes by itself on frames and lists of the graph.
#pragma once

#include "graph/op.h"

namespace janus::execute {

/// On frames or lists; those that look into lists are among them.
bool is_container_operator(const graph::OpDef& op);
/// Of ops/list_access.cpp: it looks at elements or at the length, or makes a list of another's.
bool is_list_access(const graph::OpDef& op);

}  // namespace janus::execute
