// What has been executed so far in an iteration, in terms of nodes. The merger and the cursor
// decide by it which values an event's operands are.
#pragma once

#include <optional>
#include <vector>

#include "trace/nodes.h"

namespace janus::trace {

class Iteration {
 public:
  /// Points in time: feeds of event e are there at 2e, its results at 2e+1.
  using Time = int64_t;
  static constexpr Time kNever = -2, kBeginning = -1;

  /// The value of an operand.
  struct Use {
    Source source;
    Time time = kNever;
  };

  explicit Iteration(const Nodes& nodes) : nodes_(&nodes) { begin(); }
  void begin();

  /// The event that comes next.
  uint32_t event() const { return static_cast<uint32_t>(node_of_.size()); }
  NodeId node_of(uint32_t event) const { return node_of_[event]; }
  const std::vector<NodeId>& run() const { return node_of_; }
  /// The latest event of a node; nothing if it was not executed.
  std::optional<uint32_t> latest(NodeId node) const;
  /// When a source got the value that it has now.
  Time time(const Source& source) const;

  /// What operand `index` of the next event is, if `node` executes it. Nothing if it is a value of
  /// an earlier trip: a later one has taken its place.
  std::optional<Use> use(const Event& event, uint32_t index, NodeId node) const;
  /// The node whose earlier execution the operand is of, where `use` gives nothing.
  NodeId overtaken(const Operand& operand) const;
  /// Whether operand `index` of the next event, if `node` executes it, has this value.
  bool has(const Event& event, uint32_t index, NodeId node, const Use& use) const;

  /// The next event was that of a node.
  void execute(const Event& event, NodeId node);
  /// The number of the feed that a slot had last.
  uint32_t feed_of(SlotId slot) const { return slots_[slot].feed; }
  /// Whether the operand is a feed that comes for the first time.
  bool is_new_feed(const Event& event, uint32_t index) const;

 private:
  struct SlotState {
    Time time = kNever;
    uint32_t feed = 0;
  };
  SlotId slot(const Source& source) const {
    return nodes_->nodes[source.node].inputs[source.index].slot;
  }

  const Nodes* nodes_;
  std::vector<NodeId> node_of_;       // by event
  std::vector<uint32_t> latest_;      // by node: one more than the event; 0: none
  std::vector<SlotId> slot_of_feed_;  // by the feed's number
  std::vector<SlotState> slots_;
};

}  // namespace janus::trace
