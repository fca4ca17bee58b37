#include "passes/fusion/grouping.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "../support.h"
#include "passes/fusion/fuse.h"

namespace janus::passes {
namespace {

std::vector<std::string> texts(const graph::Graph& graph, const Groups& groups) {
  std::vector<std::string> result;
  for (const auto& group : groups) {
    std::string text;
    for (const uint32_t position : group) text += graph.body().nodes[position]->output()->name;
    result.push_back(text);
  }
  return result;
}

TEST(Grouping, AProductDividesAChainIntoTwoKernels) {
  const graph::Graph graph = parsed(R"(
graph @f(%x: f32[64,64], %w: f32[64,64]) {
  %a = exp %x : f32[64,64]
  %b = neg %a : f32[64,64]
  %c = mm %b, %w : f32[64,64]
  %d = exp %c : f32[64,64]
  %e = mul %d, %b : f32[64,64]
  return %e
})");
  const auto groups = texts(graph, find_groups(graph.body(), can_fuse_by_traits));
  EXPECT_EQ(std::ranges::count(groups, "ab"), 1);
  EXPECT_EQ(std::ranges::count(groups, "de"), 1);
}

}  // namespace
}  // namespace janus::passes
