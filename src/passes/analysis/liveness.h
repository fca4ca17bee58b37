// Liveness analysis: the values that results, effects and guards need, and what those are computed
// from. Nodes with blocks are followed value by value: what a block gives for a dead result is
// dead, and a loop carries only values that lead to something. A function gives only those results
// that some call needs, and a call takes only those operands that the function needs.
#pragma once

#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace janus::passes {

class Liveness {
 public:
  explicit Liveness(const graph::Graph& graph);

  bool is_live(const graph::Value* value) const { return live_[value->id]; }
  /// Whether the node has to stay.
  bool is_live(const graph::Node& node) const;
  /// Whether a call needs this result of a function.
  bool is_result_live(const graph::Node& function, size_t index) const;

 private:
  void use(const graph::Value* value);
  void visit(const graph::Block& block);
  void visit_blocks(const graph::Node& node);
  void visit_loop(const graph::Node& loop);
  void visit_call(const graph::Node& call);
  void visit_function(const graph::Node& function);

  std::vector<bool> live_;  // by Value::id
  /// Which results of a function are needed, by function that is called.
  std::unordered_map<const graph::Node*, std::vector<bool>> called_;
  bool changed_ = false;
};

}  // namespace janus::passes
