#include "passes/gradient/reachable.h"

#include <gtest/gtest.h>

#include "../support.h"

namespace janus::passes {
namespace {

using graph::Value;

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

TEST(Reachable, LeavesAreWhereGradientsEnd) {
  const graph::Graph graph = parsed(kGraph);
  std::vector<std::string> names;
  for (const Value* leaf : differentiable_leaves(graph.results())) names.push_back(leaf->name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "w", "d"}));
}

TEST(Reachable, TargetsBehindADetachOrAComparisonAreNotReached) {
  const graph::Graph graph = parsed(kGraph);
  std::vector<Value*> targets;
  for (const char* name : {"x", "w", "u", "i", "a"}) targets.push_back(value_named(graph, name));
  EXPECT_EQ(reachable(graph.results(), targets),
            (std::vector<bool>{true, true, false, false, true}));
}

TEST(Reachable, FollowsWhatGradientsWillBeExpandedTo) {
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

}  // namespace
}  // namespace janus::passes
