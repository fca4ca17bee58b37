#include <gtest/gtest.h>

#include "../support.h"
#include "passes/cleanup/code_sinking.h"
#include "passes/cleanup/loop_invariant_code_motion.h"

namespace janus::passes {
namespace {

constexpr std::string_view kBranch = R"(
graph @f(%x: f32[2], %c: bool) {
  %a = exp %x : f32[2]
  %b = neg %x : f32[2]
  %y = if %c : f32[2] {
    %p = mul %a, %b : f32[2]
    yield %p
  } else {
    yield %b
  }
  return %y, %b
})";

TEST(CodeSinking, MovesIntoASideWhatThatSideAloneNeeds) {
  graph::Graph graph = parsed(kBranch);
  const Data data(graph);
  const graph::Outcome before = data.run(graph);
  sink_code(graph, graph.body());
  graph::verify(graph);
  ASSERT_EQ(graph.body().nodes.size(), 2U);
  EXPECT_EQ(graph.body().nodes[0]->output()->name, "b");
  EXPECT_EQ(graph.body().nodes[1]->blocks[0]->nodes.size(), 2U);
  EXPECT_TRUE(graph::identical(data.run(graph).results[0], before.results[0]));
}

TEST(LoopInvariantCodeMotion, MovesInFrontWhatDependsOnNoIteration) {
  graph::Graph graph = parsed(R"(
graph @f(%x: f32[2], %y: f32[2], %n: i64) {
  %zero = constant {value=0} : i64
  %a, %i = while %x, %zero : f32[2], i64 { (%a0: f32[2], %i0: i64)
    %go = scalar_lt %i0, %n : bool
    yield %go
  } do { (%a1: f32[2], %i1: i64)
    %p = exp %y : f32[2]
    %q = neg %p : f32[2]
    %r = mul %a1, %q : f32[2]
    %one = constant {value=1} : i64
    %k = scalar_add %i1, %one : i64
    yield %r, %k
  }
  return %a
})");
  const graph::Block& body = *graph.body().nodes.back()->blocks[1];
  EXPECT_TRUE(is_inside(*body.results[0], body));
  EXPECT_FALSE(differentiates(body));
  EXPECT_EQ(move_in_front(graph.body(), 1), 3U);
  graph::verify(graph);
  EXPECT_EQ(body.nodes.size(), 2U);
  EXPECT_EQ(graph.body().nodes.size(), 5U);
}

}  // namespace
}  // namespace janus::passes
