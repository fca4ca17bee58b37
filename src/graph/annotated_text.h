// The text of a graph together with its nodes, for reports.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace janus::graph {

struct AnnotatedText {
  std::string text;
  /// By line: the node that begins there; null where a part of another one stands.
  std::vector<const Node*> nodes;
};
/// The text is that of print().
AnnotatedText print_annotated(const Graph& graph);

}  // namespace janus::graph
