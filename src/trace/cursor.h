// Follows an iteration through a TraceGraph, event by event.
//
// This is on the path of each operator of the running program: an event costs as much as its node
// has siblings and its operands have sources.
//
// What the program decided between two events is a list of decisions, in the order in which the
// generated graph reads them (trace/to_graph.h):
//
//   select   a node with several children: the number of the child that came
//   again    after a trip of a loop whose number of trips varies: another one follows
//   leave    after such a trip: the loop is over
#pragma once

#include <span>
#include <string>

#include "trace/iteration.h"

namespace janus::trace {

struct Decision {
  enum class Kind : uint8_t { select, again, leave };
  Kind kind = Kind::select;
  NodeId node = kNone;  ///< select: behind which node, kEntry where a level begins; else the loop
  int64_t value = 0;    ///< what the graph reads: the child's number, 1 for again, 0 for leave

  friend bool operator==(const Decision&, const Decision&) = default;
};

class Cursor {
 public:
  /// Nodes and names must outlive the cursor, and not change.
  Cursor(const Nodes& nodes, const Names& names);

  /// A new iteration begins.
  void begin();
  /// The next event. False if the graph does not have it there: `mismatch` says why, and nothing
  /// else but `begin` may follow.
  bool follow(const Event& event);
  /// Python looks at a value. False if it never did before.
  bool fetch(uint32_t event, uint32_t result);
  /// The iteration is over. False if the graph goes on there.
  bool finish();

  /// The node of the last event, and what was decided since the event before it.
  NodeId node() const { return iteration_.node_of(iteration_.event() - 1); }
  std::span<const Decision> decisions() const { return decisions_; }
  const std::string& mismatch() const { return mismatch_; }
  const Iteration& iteration() const { return iteration_; }
  /// The values of the graph's symbols in this iteration, 0 for unknown ones.
  std::span<const int64_t> symbols() const { return bound_.values; }

 private:
  /// Where the iteration stands in a level.
  struct Frame {
    LevelId level = 0;
    NodeId at = kEntry;
    int64_t trips = 0;  ///< of the loop around it, with the one at hand
  };

  bool find(size_t depth, Frame frame, const Event* event);
  bool try_child(size_t depth, const Frame& frame, NodeId child, const Event* event);
  bool try_end(size_t depth, const Frame& frame, const Event* event);
  void stand(size_t depth, const Frame& frame);
  bool matches(const Event& event, NodeId node);
  bool operand_matches(const Event& event, NodeId node, uint32_t index);
  bool result_matches(const Event& event, NodeId node, uint32_t index);

  std::string explain(const Event* event);
  std::string explain_difference(const Event& event, NodeId node);
  std::string describe(const Event& event, uint32_t index, NodeId node) const;
  std::string describe(const Source& source) const;
  std::string place() const;
  void collect_keys(const Frame& frame, const Key& key, std::vector<NodeId>& found) const;

  const Nodes* nodes_;
  const Names* names_;
  Iteration iteration_;
  std::vector<Frame> frames_;
  std::vector<Decision> decisions_;
  Bindings bound_;
  std::vector<int64_t> bound_before_;
  std::string mismatch_;
};

}  // namespace janus::trace
