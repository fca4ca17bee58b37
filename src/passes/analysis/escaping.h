// Escape analysis: the tensors whose identity or layout the program can see. Those are results of
// the graph, elements of lists among them, what `rebind` hands out, operands of opaque operators
// (which may ask for strides), and the tensors that these are views of, or are once parts of them
// were written.
//
// Two of them are never made one value, and none is made an input or a state: after the call the
// program may write to one and look at the other.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace janus::passes {

class Escaping {
 public:
  explicit Escaping(const graph::Graph& graph);
  bool contains(const graph::Value* value) const { return ways_[value->id] > 0; }

  /// Whether the operand of a view is seen through this view alone, taken once, and is memory of
  /// the run's own.
  bool only_through(const graph::Node& view) const;

 private:
  void add(const graph::Value* value);
  void add_given(const graph::Node& node, size_t index);
  /// What a loop begins with, and what its body gives, may be the escaping tensor itself.
  void add_carried(const graph::Node& loop, size_t index);
  /// What the blocks of an `if`, or a function, give likewise.
  void add_block_results(const graph::Node& node, size_t index);

  std::map<std::string, std::vector<const graph::Node*>> calls_;  ///< by function
  std::vector<uint32_t> ways_;  // by Value::id: in how many places it can be seen
};

}  // namespace janus::passes
