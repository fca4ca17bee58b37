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

/// A value of the body of the graph's loop.
const graph::Value* value_in_loop(const graph::Graph& graph, std::string_view name) {
  const graph::Value* found = nullptr;
  graph::for_each_node(graph.body(), [&](const graph::Node& node) {
    for (const graph::Value* output : node.outputs)
      if (output->name == name) found = output;
  });
  return found;
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

TEST(Escaping, AreElementsOfListsThatLeave) {
  const graph::Graph graph = parsed(R"(
graph @f(%x: f32[2], %y: f32[2], %n: i64) {
  %a = clone %x : f32[2]
  %b = clone %y : f32[2]
  %none = list_new : list<f32[2]>
  %begin = list_push %none, %a : list<f32[2]>
  %inner = list_push %none, %b : list<f32[2]>
  %zero = constant {value=0} : i64
  %l, %i = while %begin, %zero : list<f32[2]>, i64 { (%l0: list<f32[2]>, %i0: i64)
    %go = scalar_lt %i0, %n : bool
    yield %go
  } do { (%l1: list<f32[2]>, %i1: i64)
    %c = clone %x : f32[2]
    %more = list_push %l1, %c : list<f32[2]>
    %one = constant {value=1} : i64
    %k = scalar_add %i1, %one : i64
    yield %more, %k
  }
  %back = list_reverse %l : list<f32[2]>
  %size = list_size %inner : i64
  return %back, %size
})");
  const Escaping escaping(graph);
  EXPECT_TRUE(escaping.contains(value_named(graph, "a")));
  EXPECT_TRUE(escaping.contains(value_in_loop(graph, "c")));
  EXPECT_FALSE(escaping.contains(value_named(graph, "b")));
}

TEST(Escaping, IsAnElementThatLeavesItsList) {
  const graph::Graph graph = parsed(R"(
graph @f(%x: f32[2], %i: i64) {
  %a = clone %x : f32[2]
  %none = list_new : list<f32[2]>
  %list = list_push %none, %a : list<f32[2]>
  %item = list_item %list, %i : f32[2]
  return %item
})");
  EXPECT_TRUE(Escaping(graph).contains(value_named(graph, "a")));
}

TEST(Escaping, IsSeenThroughAViewInALoopMoreThanOnce) {
  const graph::Graph graph = parsed(R"(
graph @f(%x: f32[2], %n: i64) {
  %a = exp %x : f32[2]
  %none = list_new : list<f32[2]>
  %zero = constant {value=0} : i64
  %l, %i = while %none, %zero : list<f32[2]>, i64 { (%l0: list<f32[2]>, %i0: i64)
    %go = scalar_lt %i0, %n : bool
    yield %go
  } do { (%l1: list<f32[2]>, %i1: i64)
    %view = detach %a : f32[2]
    %own = exp %view : f32[2]
    %only = detach %own : f32[2]
    %more = list_push %l1, %view : list<f32[2]>
    %both = list_push %more, %only : list<f32[2]>
    %one = constant {value=1} : i64
    %k = scalar_add %i1, %one : i64
    yield %both, %k
  }
  return %l
})");
  const Escaping escaping(graph);
  EXPECT_FALSE(escaping.only_through(*value_in_loop(graph, "view")->definition));
  EXPECT_TRUE(escaping.only_through(*value_in_loop(graph, "only")->definition));
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
