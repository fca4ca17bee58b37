#include "passes/reach/reachability.h"

#include <gtest/gtest.h>

#include "../support.h"

namespace janus::passes {
namespace {

using graph::Value;

std::vector<bool> reaches(std::span<Value* const> outputs, std::span<Value* const> targets,
                          Paths paths) {
  const Reached reached = reached_from(outputs, paths);
  std::vector<bool> result;
  for (Value* target : targets) result.push_back(reached.contains(target));
  return result;
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

TEST(Reachability, GoesThroughBranchesAndIterations) {
  const graph::Graph graph = parsed(kBranches);
  EXPECT_EQ(reaches(graph.results(), graph.inputs().first(5), Paths::any),
            std::vector<bool>(5, true));
  Value* branch = graph.body().nodes[1]->outputs[0];
  const auto inputs = graph.inputs().first(5);
  using Flags = std::vector<bool>;
  EXPECT_EQ(reaches(std::span(&branch, 1), inputs, Paths::any),
            (Flags{true, true, true, false, false}));
  EXPECT_EQ(reaches(std::span(&branch, 1), inputs, Paths::certain),
            (Flags{true, false, false, false, false}));
}

TEST(Reachability, KnowsWhatALoopReachesForCertain) {
  graph::Graph graph = parsed(kBranches);
  const auto certain = [&](int64_t minimum) {
    graph.body().nodes[2]->attributes.set("minimum", minimum);
    return reaches(graph.results(), graph.inputs().first(5), Paths::certain);
  };
  using Flags = std::vector<bool>;
  // The values change places, so neither start is reached by every number of iterations.
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
  EXPECT_EQ(reaches(graph.results(), graph.inputs().first(4), Paths::any),
            (std::vector<bool>{true, true, true, true}));
  EXPECT_EQ(reaches(graph.results(), graph.inputs().first(4), Paths::certain),
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
    EXPECT_EQ(reaches(graph.results().first(1), graph.inputs(), paths),
              (std::vector<bool>{true, false}));
    EXPECT_EQ(reaches(graph.results().last(1), graph.inputs(), paths),
              (std::vector<bool>{true, true}));
  }
}

}  // namespace
}  // namespace janus::passes
