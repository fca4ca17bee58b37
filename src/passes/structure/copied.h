// A graph's copy: for passes that then reorder nodes, and where a graph is needed twice.
#pragma once

#include "graph/rewriter.h"

namespace janus::passes {

inline graph::Graph copied(const graph::Graph& graph) {
  graph::Rewriter rewriter(graph);
  rewriter.run([](const graph::Node&) { return false; });
  return rewriter.finish();
}

}  // namespace janus::passes
