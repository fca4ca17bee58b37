// Whose memory a tensor of the graph lies in.
#pragma once

#include "graph/graph.h"
#include "graph/op.h"

namespace janus::graph {

/// The value itself, or what it is a view of, through views of views.
inline const Value* owner_of(const Value* value) {
  while (value->definition != nullptr && value->definition->op->is(Trait::view))
    value = value->definition->inputs.front();
  return value;
}

}  // namespace janus::graph
