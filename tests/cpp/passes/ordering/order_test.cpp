#include "passes/ordering/order.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "../support.h"
#include "base/check.h"
#include "passes/ordering/acyclic_partition.h"

namespace janus::passes {
namespace {

TEST(Order, TakesTheSmallestPriorityOfAllThatCouldComeNext) {
  const Predecessors before = {{}, {}, {0}, {1, 2}};
  const std::vector<uint64_t> priority = {5, 1, 0, 2};
  EXPECT_EQ(sort_topologically(before, priority), (std::vector<uint32_t>{1, 0, 2, 3}));
}

TEST(Order, RefusesACycle) {
  const Predecessors before = {{1}, {0}};
  const std::vector<uint64_t> priority = {0, 1};
  EXPECT_THROW(sort_topologically(before, priority), InternalError);
}

constexpr std::string_view kGraph = R"(
graph @f(%x: f32[2], %y: f32[2]) {
  %a = exp %x : f32[2]
  %b = neg %a : f32[2]
  %c = exp %y : f32[2]
  %d = mul %b, %c : f32[2]
  commit %a {cell="first"}
  commit %d {cell="second"}
  return %d
})";

TEST(Order, KeepsDataAndEffectsInTheirOrder) {
  const graph::Graph graph = parsed(kGraph);
  const Predecessors before = predecessors(graph.body());
  const auto precedes = [&](uint32_t first, uint32_t second) {
    return std::ranges::count(before[second], first) > 0;
  };
  EXPECT_TRUE(precedes(0, 1));
  EXPECT_TRUE(precedes(2, 3));
  EXPECT_TRUE(precedes(4, 5));
  EXPECT_FALSE(precedes(1, 2));
}

TEST(AcyclicPartition, JoinedNodesStandTogether) {
  graph::Graph graph = parsed(kGraph);
  const std::vector<graph::Node*> nodes(graph.body().nodes);
  AcyclicPartition partition(graph.body());
  EXPECT_EQ(partition.independent({0, 1, 2}).front(), (std::vector<uint32_t>{0, 2}));
  partition.join({0, 2});
  partition.put_in_order(graph.body());
  EXPECT_EQ(graph.body().nodes[0], nodes[0]);
  EXPECT_EQ(graph.body().nodes[1], nodes[2]);
}

}  // namespace
}  // namespace janus::passes
