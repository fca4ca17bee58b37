// How the feeds and numbers of an iteration are given to the generated graph.
#pragma once

#include <vector>

#include "trace/structure.h"

namespace janus::trace {

/// How often a place that takes something from outside is executed in an iteration.
enum class Given : uint8_t {
  always,     ///< exactly once: an input of the graph
  perhaps,    ///< at most once: a list of one or none
  repeatedly  ///< a list in the order of execution
};

class SlotUses {
 public:
  explicit SlotUses(const Nodes& nodes);

  Given given(SlotId slot) const { return given_[slot]; }
  /// Whether the node is executed exactly once, or how often else.
  Given executed(NodeId node) const { return executed_[node]; }
  /// Whether the slot's feed is one of several sources. Then it is the same for the whole
  /// iteration, and what its input holds when the iteration begins.
  bool is_early(SlotId slot) const { return early_[slot]; }

 private:
  void visit_level(LevelId level, Given around);
  bool is_first(const Input& input, NodeId node) const;
  NodeId around(NodeId node, LevelId level) const;

  const Nodes& nodes_;
  std::vector<LevelOrder> orders_;  // by level
  std::vector<Given> executed_;     // by node
  std::vector<bool> certain_;       // by node: executed at least once
  std::vector<Given> given_;        // by slot
  std::vector<bool> early_;
};

}  // namespace janus::trace
