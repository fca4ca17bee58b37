// Merges folded traces into nodes, one after the other.
//
// A pointer goes along a level. If a child of the node where it stands is the next event, it goes
// there. Else, if another node that is not behind it is that event, an edge joins the two. Else the
// event becomes a node. A node is an event if operator, location and types are the same and each
// operand comes from a source of the node's input; or may come from it as one more source.
//
// One more source is taken in only if every use of the input so far, in every trace, keeps its
// value by the rule of the latest one (trace/nodes.h).
#pragma once

#include <set>
#include <span>

#include "trace/iteration.h"

namespace janus::trace {

/// The trips of this loop use values of trips before the previous one: they have to be nodes of
/// their own.
struct UnrollLoop {
  Key head;
};

class Merger {
 public:
  /// `exact`: events whose inputs take in no further sources.
  Merger(Nodes& nodes, std::span<const Trace> traces, const std::set<Key>& exact)
      : nodes_(nodes),
        traces_(traces),
        exact_(exact),
        runs_(traces.size()),
        times_(traces.size()),
        iteration_(nodes) {}

  /// Merges the next trace. Throws UnrollLoop.
  void merge(size_t trace, std::span<const Item> items);

  /// The node of each event, by trace.
  std::span<const std::vector<NodeId>> runs() const { return runs_; }
  /// The numbers of trips that were seen, by loop.
  const std::map<NodeId, std::set<int64_t>>& trips() const { return trips_; }

 private:
  using Use = Iteration::Use;
  using Time = Iteration::Time;

  /// When results and slots got values in a trace.
  using Times = std::map<Source, std::vector<Time>>;
  /// Where an input was used, and since when what it used had been there.
  struct PastUse {
    size_t trace = 0;
    uint32_t event = 0;
    Time time = 0;
  };

  void merge_level(LevelId level, std::span<const Item> items);
  NodeId merge_loop(LevelId level, NodeId from, const Item& item);
  NodeId find_loop(LevelId level, NodeId from, const Key& key) const;
  NodeId merge_event(LevelId level, NodeId from, const Event& event);
  NodeId find_event(LevelId level, NodeId from, const Event& event);
  NodeId new_event(LevelId level, const Event& event);
  void connect(LevelId level, NodeId from, NodeId to);
  bool leads_to(NodeId from, NodeId to) const;
  /// The nodes with this key that came next before, and the others of the level that may.
  std::vector<NodeId> children(LevelId level, NodeId from, const Key& key) const;
  std::vector<NodeId> others(LevelId level, NodeId from, const Key& key) const;

  bool fits(const Event& event, NodeId node) const;
  bool fits_again(const Event& event, NodeId node) const;
  bool matches(const Event& event, NodeId node) const;
  bool can_match(const Event& event, NodeId node) const;
  bool can_take(const Event& event, NodeId node, uint32_t input, const Use& use) const;
  bool keeps_past_uses(NodeId node, uint32_t input, const Source& source) const;
  Time time_before(size_t trace, const Source& source, uint32_t event) const;
  const graph::Type& type_of(const Source& source, const Operand& operand) const;
  NodeId take(const Event& event, NodeId node);
  void add_source(NodeId node, uint32_t input, const Source& source, const Operand& operand);
  void execute(const Event& event, NodeId node);

  Nodes& nodes_;
  std::span<const Trace> traces_;
  const std::set<Key>& exact_;
  std::vector<std::vector<NodeId>> runs_;
  std::vector<Times> times_;
  std::map<std::pair<NodeId, uint32_t>, std::vector<PastUse>> past_uses_;
  std::map<std::pair<LevelId, Key>, std::vector<NodeId>> by_key_;
  std::map<NodeId, std::set<int64_t>> trips_;
  std::map<SlotId, const graph::Type*> slot_types_;  // in this iteration
  Iteration iteration_;
  size_t trace_ = 0;
  uint32_t level_begin_ = 0;  // the first event of the level at hand, or of this trip of it
};

}  // namespace janus::trace
