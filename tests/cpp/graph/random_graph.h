// Random well-typed graphs with control flow, for properties that hold of every graph. All tensors
// have one of a few shapes, so that operands that fit are found at once.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "graph/graph.h"

namespace janus::graph {

class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed), graph_("random") {}

  /// About `size` nodes. Inputs: a bool, an i64, and four tensors, two of them with a dimension B.
  Graph build(int size);

 private:
  size_t pick(size_t count) { return random_() % count; }
  bool chance(size_t one_in) { return pick(one_in) == 0; }

  Value* tensor();
  Value* tensor_like(const Type& type);
  Value* flag() { return flags_[pick(flags_.size())]; }
  std::string name();

  void add_node(Builder& builder, int depth);
  void add_elementwise(Builder& builder);
  void add_branch(Builder& builder, int depth);
  void add_loop(Builder& builder, int depth);
  void add_fused(Builder& builder);
  void add_attributes(Builder& builder);
  void fill_block(Node& node, Block& block, int depth, const std::vector<Type>& result_types);

  std::mt19937 random_;
  Graph graph_;
  std::vector<Value*> tensors_, flags_;  // visible at the point of building
};

}  // namespace janus::graph
