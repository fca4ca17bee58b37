// Which values somebody needs: results, effects and guards, and what those are computed from.
// Through nodes with blocks it goes value by value: what a block gives for a result that nobody
// needs is not needed, and of a loop only those carried values that lead to something.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace janus::passes {

class Liveness {
 public:
  explicit Liveness(const graph::Graph& graph);

  bool is_live(const graph::Value* value) const { return live_[value->id]; }
  /// Whether the node has to stay.
  bool is_live(const graph::Node& node) const;

 private:
  void use(const graph::Value* value) { live_[value->id] = true; }
  void visit(const graph::Block& block);
  void visit_blocks(const graph::Node& node);
  void visit_loop(const graph::Node& loop);

  std::vector<bool> live_;  // by Value::id
};

}  // namespace janus::passes
