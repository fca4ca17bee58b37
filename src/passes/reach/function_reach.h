// What functions hand gradients of their results on to, as far as it is known: the table that the
// fixpoint over functions that call each other fills (control_reach.h).
#pragma once

#include <cstddef>
#include <set>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "passes/reach/paths.h"

namespace janus::passes {

/// What a block hands a gradient on to.
struct BlockSources {
  Reached outer;                ///< values from outside
  std::set<size_t> parameters;  ///< of the block
  friend bool operator==(const BlockSources&, const BlockSources&) = default;
};

class FunctionReach {
 public:
  /// Nothing is reached yet.
  explicit FunctionReach(const std::vector<graph::Node*>& functions);
  /// Of a gradient of result `index` of a function. Whether this differs from what was known.
  bool set(const graph::Node& function, size_t index, BlockSources sources);
  /// Whether the function that it calls is among them.
  bool knows(const graph::Node& call) const;
  /// What a gradient of result `index` of `call` flows on to.
  std::vector<graph::Value*> through(const graph::Node& call, size_t index) const;

 private:
  std::unordered_map<const graph::Node*, std::vector<BlockSources>> sources_;  ///< by result
};

}  // namespace janus::passes
