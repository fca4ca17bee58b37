// Activity analysis: the nodes that differentiation has to go through.
#pragma once

#include <span>
#include <vector>

#include "graph/graph.h"

namespace janus::passes {

/// The nodes between targets and outputs: those that an output is computed by and that depend on a
/// target.
class ActiveNodes {
 public:
  /// `within`: only nodes of this block count, what it uses from outside is given; null: all nodes
  /// that lead to the outputs, wherever they stand.
  ActiveNodes(size_t value_count, std::span<graph::Value* const> outputs,
              std::span<graph::Value* const> targets, const graph::Block* within);

  /// In program order.
  std::span<graph::Node* const> nodes() const { return nodes_; }
  /// Whether the value is a target or computed from one.
  bool depends(const graph::Value* value) const {
    return value->id < depends_.size() && depends_[value->id];
  }

 private:
  void collect(std::span<graph::Value* const> outputs, const graph::Block* within);
  void sort(const graph::Block* within);
  bool hands_on(const graph::Node& node) const;
  void mark(const graph::Node& node);

  std::vector<graph::Node*> nodes_;
  std::vector<bool> depends_;  // by Value::id
};

}  // namespace janus::passes
