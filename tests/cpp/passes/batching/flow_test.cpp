#include "passes/batching/flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace janus::passes {
namespace {

/// By vertex, which others it leads to on some way.
std::vector<std::vector<bool>> reached(const Edges& edges) {
  std::vector<std::vector<bool>> result(edges.size(), std::vector<bool>(edges.size()));
  for (size_t from = 0; from < edges.size(); ++from) {
    std::vector<uint32_t> pending(edges[from]);
    while (!pending.empty()) {
      const uint32_t next = pending.back();
      pending.pop_back();
      if (result[from][next]) continue;
      result[from][next] = true;
      pending.insert(pending.end(), edges[next].begin(), edges[next].end());
    }
  }
  return result;
}

TEST(Flow, ComponentsAreWhatLeadsToEachOther) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Edges edges(1 + random() % 12);
    for (size_t i = random() % (2 * edges.size()); i > 0; --i)
      edges[random() % edges.size()].push_back(static_cast<uint32_t>(random() % edges.size()));
    const auto leads = reached(edges);
    const auto component = components(edges);
    for (size_t a = 0; a < edges.size(); ++a)
      for (size_t b = 0; b < edges.size(); ++b) {
        if (a == b) continue;
        EXPECT_EQ(component[a] == component[b], leads[a][b] && leads[b][a]);
        if (leads[a][b]) EXPECT_LE(component[a], component[b]);
      }
  }
}

TEST(Flow, LongChainsDoNotUseUpTheStack) {
  Edges edges(1 << 20);
  for (uint32_t i = 0; i + 1 < edges.size(); ++i) edges[i].push_back(i + 1);
  const auto component = components(edges);
  EXPECT_TRUE(std::ranges::is_sorted(component));
  EXPECT_EQ(component.back(), edges.size() - 1);
}

}  // namespace
}  // namespace janus::passes
