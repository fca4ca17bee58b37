// Uniform values: those that are the same in all invocations of functions that are batched. All
// others vary.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"

namespace janus::passes {

/// Values of the graph's body, and what is computed of such alone.
class UniformValues {
 public:
  /// `once`: those of `functions` that run once.
  UniformValues(const graph::Block& body, std::vector<graph::Node*> functions,
                const std::vector<graph::Node*>& once);

  /// Where it is computed in a function, it costs little to compute it again.
  bool contains(const graph::Value* value);

  /// Whether it is there at once, but is not the same for all: what stands where a function runs
  /// once and has it may be like what has another (the answers of several losses); or it is
  /// computed there, and is not to be computed again.
  bool is_there(const graph::Value* value);

  /// Whether it is computed in a function, so that it takes a node to have it elsewhere as well.
  bool is_inside(const graph::Value* value) const;

 private:
  bool is_of_one(const graph::Value& value) const;
  bool is_uniform(const graph::Value& value);

  const graph::Block& body_;
  const std::vector<graph::Node*> functions_;
  std::unordered_set<const graph::Block*> once_;
  std::unordered_map<const graph::Value*, size_t> uses_;  ///< > 1 where a node runs many times
  std::unordered_map<const graph::Value*, bool> known_;
};

/// Which operands of a node differ from invocation to invocation.
std::vector<bool> varying_operands(const graph::Node& node, UniformValues& uniform);

}  // namespace janus::passes
