// Whether a gradient comes to a value where that depends on branches: a flag that the graph
// computes. Eager leaves None as the `.grad` of what it does not come to.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "frontend/interpreter.h"

namespace janus::frontend {

/// The flags of gradients of `outputs`.
class ReachedFlags {
 public:
  ReachedFlags(Interpreter& interpreter, const std::vector<graph::Value*>& outputs)
      : interpreter_(interpreter), outputs_(outputs) {}

  struct Reached {
    bool certain = true;
    graph::Value* flag = nullptr;  ///< where it isn't
    TestKey test;                  ///< of a branch that it depends on
  };
  /// Whether a gradient comes to one of the targets, some of which it may come to. Throws
  /// CannotMerge where a loop or a function decides that.
  Reached of(const std::vector<graph::Value*>& targets);

 private:
  /// A flag known now, or one of the graph.
  struct Flag {
    bool known = false;
    graph::Value* value = nullptr;
    bool operator==(const Flag&) const = default;
  };
  using Known = std::unordered_map<const graph::Value*, Flag>;

  Flag of(graph::Value* value);
  Flag find(graph::Value* value);
  Flag through_branch(graph::Value& output);
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
};

}  // namespace janus::frontend
