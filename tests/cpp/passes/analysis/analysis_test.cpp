// Small questions to each analysis; the goldens of the passes ask them larger ones.
#include <gtest/gtest.h>

#include "../support.h"
#include "passes/analysis/escaping.h"
#include "passes/analysis/liveness.h"
#include "passes/analysis/unobservable_layouts.h"

namespace janus::passes {
namespace {

constexpr std::string_view kLoop = R"(
graph @f(%x: f32[2], %y: f32[2], %n: i64) {
  %zero = constant {value=0} : i64
  %a, %b, %i = while %x, %y, %zero : f32[2], f32[2], i64 { (%a0: f32[2], %b0: f32[2], %i0: i64)
    %go = scalar_lt %i0, %n : bool
    yield %go
  } do { (%a1: f32[2], %b1: f32[2], %i1: i64)
    %p = mul %a1, %a1 : f32[2]
    %q = mul %b1, %p : f32[2]
    %one = constant {value=1} : i64
    %k = scalar_add %i1, %one : i64
    yield %p, %q, %k
  }
  return %a
})";

TEST(Liveness, OfALoopOnlyThoseCarriedValuesThatLeadToSomething) {
  const graph::Graph graph = parsed(kLoop);
  const Liveness liveness(graph);
  const graph::Node& loop = *graph.body().nodes.back();
  EXPECT_TRUE(liveness.is_live(loop));
  EXPECT_TRUE(liveness.is_live(loop.blocks[1]->parameters[0]));
  EXPECT_FALSE(liveness.is_live(loop.blocks[1]->parameters[1]));
  EXPECT_TRUE(liveness.is_live(loop.blocks[1]->parameters[2]));
  EXPECT_FALSE(liveness.is_live(value_named(graph, "y")));
}

TEST(Escaping, AreResultsAndWhatTheyAreViewsOf) {
  const graph::Graph graph = parsed(R"(
graph @f(%x: f32[2,3]) {
  %a = exp %x : f32[2,3]
  %b = neg %a : f32[2,3]
  %c = transpose %b {dim0=0, dim1=1} : f32[3,2]
  return %c
})");
  const Escaping escaping(graph);
  EXPECT_TRUE(escaping.contains(value_named(graph, "c")));
  EXPECT_TRUE(escaping.contains(value_named(graph, "b")));
  EXPECT_FALSE(escaping.contains(value_named(graph, "a")));
}

TEST(UnobservableLayouts, AreThoseOfTemporariesThatNewTensorsAreComputedFrom) {
  const graph::Graph graph = parsed(R"(
graph @f(%x: f32[2,3]) {
  %a = exp %x : f32[2,3]
  %b = mul %a, %x : f32[2,3]
  return %b
})");
  const std::vector<bool> unobservable = find_unobservable(graph);
  EXPECT_TRUE(unobservable[value_named(graph, "a")->id]);
  EXPECT_FALSE(unobservable[value_named(graph, "b")->id]);
}

}  // namespace
}  // namespace janus::passes
