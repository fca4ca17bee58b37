// How gradients get through nodes with blocks, and through calls.
#pragma once

#include <set>
#include <unordered_map>
#include <vector>

#include "passes/reach/reachability.h"

namespace janus::passes {

/// What a block hands a gradient on to.
struct BlockSources {
  Reached outer;                ///< values from outside
  std::set<size_t> parameters;  ///< of the block
  friend bool operator==(const BlockSources&, const BlockSources&) = default;
};

/// What functions that call each other hand gradients of their results on to: a fixed point. What
/// is reached at all is the least one. What is reached for certain is the greatest: every run comes
/// to an end, so if all ways through a function lead there, given that the calls in it do, they do.
class FunctionReach {
 public:
  FunctionReach(const graph::Node& call, Paths paths);
  /// Whether the function that it calls is among them.
  bool knows(const graph::Node& call) const;
  /// What a gradient of result `index` of `call` flows on to.
  std::vector<graph::Value*> through(const graph::Node& call, size_t index) const;

 private:
  /// Until nothing changes.
  void find(const std::vector<graph::Node*>& functions, Paths paths);
  std::unordered_map<const graph::Node*, std::vector<BlockSources>> sources_;  ///< by result
};

/// The operands of an `if`, `while` or call, and the values that its blocks, and the functions that
/// it runs, use from outside, that a gradient of its result `output` flows on to. `functions`: null
/// if nothing is known of them yet.
std::vector<graph::Value*> reached_through(const graph::Value& output, Paths paths,
                                           const FunctionReach* functions);

}  // namespace janus::passes
