// The inputs of a generated graph for one iteration, as a cursor follows it.
#pragma once

#include <vector>

#include "trace/to_graph.h"

namespace janus::trace {

class Feeding {
 public:
  explicit Feeding(const Nodes& nodes) : nodes_(&nodes) { begin(); }

  void begin();
  /// The cursor has followed the event.
  void add(const Cursor& cursor, const Event& event);
  /// The cursor has finished the iteration.
  void finish(const Cursor& cursor);

  /// All decisions, in the order in which the graph reads them.
  const std::vector<int64_t>& decisions() const { return decisions_; }
  /// What a slot got: the numbers of feeds; of numbers, how many came before in the iteration.
  const std::vector<uint32_t>& given(SlotId slot) const { return given_[slot]; }
  /// The value of a symbol; 2 if nothing in the iteration depends on it.
  int64_t symbol(int32_t symbol) const;

 private:
  const Nodes* nodes_;
  std::vector<int64_t> decisions_;
  std::vector<std::vector<uint32_t>> given_;  // by slot
  std::vector<int64_t> symbols_;
  uint32_t feeds_ = 0, numbers_ = 0;
};

}  // namespace janus::trace
