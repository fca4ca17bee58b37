#include "passes/reach/reachability.h"

#include <gtest/gtest.h>

#include "support.h"

namespace janus::passes {
namespace {

using graph::Value;

const Value* named(const graph::Graph& graph, std::string_view name) {
  for (const Value* input : graph.inputs())
    if (input->name == name) return input;
  for (const graph::Node* node : graph.body().nodes)
    for (const Value* output : node->outputs)
      if (output->name == name) return output;
  return nullptr;
}

constexpr std::string_view kGraph = R"(
graph @f(%x: f32[2], %i: i64[2], %u: f32[2]) {
  %w = state {cell="w"} : f32[2]
  %d = detach %u : f32[2]
  %a = mul %x, %w : f32[2]
  %b = mul %a, %d : f32[2]
  %c = mul %b, %i : f32[2]
  %e = gt %u, %c : b1[2]
  %y = where %e, %c, %a : f32[2]
  return %y
})";

TEST(Reachability, LeavesAreWhereGradientsEnd) {
  const graph::Graph graph = parsed(kGraph);
  std::vector<std::string> names;
  for (const Value* leaf : differentiable_leaves(graph.results())) names.push_back(leaf->name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "w", "d"}));
}

TEST(Reachability, TargetsBehindADetachOrAComparisonAreNotReached) {
  const graph::Graph graph = parsed(kGraph);
  std::vector<Value*> targets;
  for (const char* name : {"x", "w", "u", "i", "a"})
    targets.push_back(const_cast<Value*>(named(graph, name)));
  EXPECT_EQ(reachable(graph.results(), targets),
            (std::vector<bool>{true, true, false, false, true}));
}

TEST(Reachability, FollowsWhatGradientsWillBeExpandedTo) {
  const graph::Graph graph = parsed(R"(
graph @f(%x: f32[2], %b: f32[2], %w: f32[2]) {
  %none = constant {value=none} : none
  %alpha = constant {value=1} : i64
  %a = mul %x, %w : f32[2]
  %c = mul %a, %a : f32[2]
  %y = add %c, %b, %alpha : f32[2]
  %l = sum %y : f32[]
  %dx, %db = gradient %l, %none, %x, %b {create_graph=true, outputs=1, targets=2} : f32[2], f32[2]
  %e = gradient %l, %none, %w {outputs=1, targets=1} : f32[2]
  return %dx, %db, %e
})");
  const auto& inputs = graph.inputs();
  EXPECT_EQ(reachable(graph.results().first(1), inputs), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(reachable(graph.results().subspan(1, 1), inputs),
            (std::vector<bool>{false, false, false}));
  EXPECT_EQ(reachable(graph.results().subspan(2, 1), inputs),
            (std::vector<bool>{false, false, false}));
}

TEST(Reachability, SavedValuesAreThoseThatTheGradientRuleUses) {
  const graph::Graph graph = parsed(R"(
graph @f(%x: f32[2], %y: f32[2]) {
  %alpha = constant {value=1} : i64
  %a = mul %x, %y : f32[2]
  %b = tanh %a : f32[2]
  %c = add %a, %b, %alpha : f32[2]
  return %c
})");
  const auto saved = [&](std::string_view name) {
    return saved_values(*named(graph, name)->definition);
  };
  EXPECT_EQ(saved("a").inputs, (std::vector<bool>{true, true}));
  EXPECT_EQ(saved("a").outputs, (std::vector<bool>{false}));
  EXPECT_EQ(saved("b").inputs, (std::vector<bool>{false}));
  EXPECT_EQ(saved("b").outputs, (std::vector<bool>{true}));
  EXPECT_EQ(saved("c").inputs.at(0), false);
  EXPECT_EQ(saved("c").inputs.at(1), false);
}

constexpr std::string_view kBranches = R"(
graph @f(%x: f32[2], %y: f32[2], %z: f32[2], %u: f32[2], %v: f32[2], %c: bool, %n: i64) {
  %zero = constant {value=0} : i64
  %a, %b = if %c : f32[2], f32[2] {
    %p = mul %x, %y : f32[2]
    yield %p, %u
  } else {
    %q = mul %x, %z : f32[2]
    yield %q, %x
  }
  %r, %s, %i = while %a, %v, %zero : f32[2], f32[2], i64 { (%r0: f32[2], %s0: f32[2], %i0: i64)
    %go = scalar_lt %i0, %n : bool
    yield %go
  } do { (%r1: f32[2], %s1: f32[2], %i1: i64)
    %m = mul %r1, %u : f32[2]
    yield %s1, %m, %i1
  }
  return %r
})";

TEST(Reachability, GoesThroughBranchesAndRounds) {
  const graph::Graph graph = parsed(kBranches);
  std::vector<std::string> names;
  for (const Value* leaf : differentiable_leaves(graph.results())) names.push_back(leaf->name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "y", "z", "u", "v"}));
  Value* branch = graph.body().nodes[1]->outputs[0];
  const auto inputs = graph.inputs().first(5);
  using Flags = std::vector<bool>;
  EXPECT_EQ(reachable(std::span(&branch, 1), inputs), (Flags{true, true, true, false, false}));
  EXPECT_EQ(reachable(std::span(&branch, 1), inputs, Paths::certain),
            (Flags{true, false, false, false, false}));
}

TEST(Reachability, KnowsWhatALoopReachesForCertain) {
  graph::Graph graph = parsed(kBranches);
  const auto certain = [&](int64_t minimum) {
    graph.body().nodes[2]->attributes.set("minimum", minimum);
    return reachable(graph.results(), graph.inputs().first(5), Paths::certain);
  };
  using Flags = std::vector<bool>;
  // The values change places, so neither start is reached by every number of rounds.
  EXPECT_EQ(certain(0), (Flags{false, false, false, false, false}));
  EXPECT_EQ(certain(1), (Flags{false, false, false, false, false}));
  EXPECT_EQ(certain(2), (Flags{false, false, false, true, false}));
}

/// The base case ends every recursion; what only the other side uses, not every one uses.
TEST(Reachability, ARecursionLeadsForCertainWhereAllItsWaysLead) {
  const graph::Graph graph = parsed(R"(
graph @f(%x: f32[2], %w: f32[2], %u: f32[2], %v: f32[2], %n: i64) {
  %zero = constant {value=0} : i64
  %one = constant {value=1} : i64
  function {name="f"} { (%y: f32[2], %k: i64)
    %go = scalar_gt %k, %zero : bool
    %r = if %go : f32[2] {
      %rest = scalar_sub %k, %one : i64
      %z = mul %y, %v : f32[2]
      %a = call %z, %rest {callee="f"} : f32[2]
      yield %a
    } else {
      %b = mul %y, %u : f32[2]
      %c = mul %b, %w : f32[2]
      yield %c
    }
    yield %r
  }
  %y = call %x, %n {callee="f"} : f32[2]
  return %y
})");
  EXPECT_EQ(reachable(graph.results(), graph.inputs().first(4), Paths::any),
            (std::vector<bool>{true, true, true, true}));
  EXPECT_EQ(reachable(graph.results(), graph.inputs().first(4), Paths::certain),
            (std::vector<bool>{true, true, true, false}));
}

TEST(Reachability, OfAFunctionsResultsEachLeadsItsOwnWay) {
  const graph::Graph graph = parsed(R"(
graph @f(%x: f32[2], %w: f32[2]) {
  function {name="f"} { (%a: f32[2], %b: f32[2])
    %c = exp %a : f32[2]
    %d = mul %b, %w : f32[2]
    yield %c, %d
  }
  %y, %z = call %x, %x {callee="f"} : f32[2], f32[2]
  return %y, %z
})");
  for (const Paths paths : {Paths::any, Paths::certain}) {
    EXPECT_EQ(reachable(graph.results().first(1), graph.inputs(), paths),
              (std::vector<bool>{true, false}));
    EXPECT_EQ(reachable(graph.results().last(1), graph.inputs(), paths),
              (std::vector<bool>{true, true}));
  }
}

}  // namespace
}  // namespace janus::passes
