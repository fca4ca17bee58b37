// Gradient reachability: whether a gradient comes to a value. Where that depends on branches, the
// answer is a flag that the graph computes. Eager leaves None as `.grad` of what no gradient
// reaches.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The flags of gradients of `outputs`.
class GradientReachability {
 public:
  GradientReachability(Interpreter& interpreter, const std::vector<graph::Value*>& outputs)
      : interpreter_(interpreter), outputs_(outputs) {}

  struct Reached {
    bool certain = true;
    graph::Value* flag = nullptr;  ///< where it isn't
    TestKey test;                  ///< of a branch that it depends on
  };
  /// Whether a gradient comes to one of the targets, some of which it may come to. Throws
  /// CannotMerge where that can't be told.
  Reached of(const std::vector<graph::Value*>& targets);

 private:
  /// A flag known now, or one of the graph.
  struct Flag {
    bool known = false;
    graph::Value* value = nullptr;
    bool operator==(const Flag&) const = default;
  };
  using Known = std::unordered_map<const graph::Value*, Flag>;

  /// Where targets are used: those that are used in the same places are reached alike.
  using Places = std::set<std::pair<const void*, size_t>>;
  Places places_of_targets();
  Reached through_all();
  Flag of(graph::Value* value);
  Flag find(graph::Value* value);
  Flag through_branch(graph::Value& output);
  Flag through_loop(graph::Value& output);
  Flag in_iteration(graph::Value& parameter);
  size_t carried(graph::Node& loop, size_t index);
  Flag through_call(graph::Value& output);
  size_t result_of(graph::Node& function, size_t index);
  std::string structure_of(const graph::Node& function, size_t index);
  std::string structure(graph::Value* value);
  std::string describe(graph::Value* value);
  const std::vector<graph::Value*>& operands_of(graph::Value* value);
  Flag through_uncertain(graph::Value& output);
  Flag either(Flag a, Flag b, graph::Block& block);
  graph::Value* in_block(Flag flag, graph::Block& block);

  Interpreter& interpreter_;
  const std::vector<graph::Value*> outputs_;
  std::unordered_set<const graph::Value*> targets_;
  std::unordered_map<const graph::Value*, std::vector<graph::Value*>> operands_;
  Known known_;
  std::optional<TestKey> test_;
  struct Part {
    const void* place;  ///< a block, or the node whose result the flag is
    graph::Value *first, *second;
    bool of_first, of_second;
    auto operator<=>(const Part&) const = default;
  };
  std::map<Part, graph::Value*> made_;
  std::map<Places, Reached> reached_;
  /// Of a value that a loop carries: which other one tells whether it is reached.
  std::map<std::pair<const graph::Node*, size_t>, size_t> carried_;
  /// Of a function: the result `second`.
  using FunctionResult = std::pair<const graph::Node*, size_t>;
  /// Which result of the function is the flag of another one, while that is being found.
  std::map<FunctionResult, size_t> open_;
  /// The same once it is found, by structure(): what is used in the same places has one flag.
  std::map<std::string, size_t> found_;
  std::unordered_map<const graph::Value*, std::string> structures_;
  std::set<FunctionResult> described_;  ///< that structure() is in
};

}  // namespace janus::frontend
