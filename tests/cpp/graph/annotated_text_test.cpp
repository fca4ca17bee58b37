#include "graph/annotated_text.h"

#include <gtest/gtest.h>

#include "graph/text.h"
#include "graph/traffic.h"
#include "ops/list.h"

namespace janus::graph {
namespace {

Graph fused_graph() {
  return parse(R"(graph @step(%x: f32[4,8], %y: f32[8]) {
  %h = fused %x, %y, %x : f32[4,8] { (%a: f32[4,8], %b: f32[8], %c: f32[4,8])
    %one = constant {value=1} : i64
    %d = add %a, %b, %one : f32[4,8]
    %e = mul %d, %c : f32[4,8]
    yield %e
  }
  %n = relu %h : f32[4,8]
  return %n
}
)",
               ops::table());
}

TEST(AnnotatedText, SaysWhichNodeBeginsOnEachLine) {
  const Graph graph = fused_graph();
  const AnnotatedText printed = print_annotated(graph);
  EXPECT_EQ(printed.text, print(graph));
  const Node* const fused = graph.body().nodes.front();
  const std::vector<Node*>& within = fused->blocks.front()->nodes;
  const std::vector<const Node*> expected = {nullptr,   fused,   within[0], within[1],
                                             within[2], nullptr, nullptr,   graph.body().nodes[1],
                                             nullptr,   nullptr};
  EXPECT_EQ(printed.nodes, expected);
}

TEST(Traffic, CountsEachOperandOnce) {
  const Graph graph = fused_graph();
  const Node& fused = *graph.body().nodes.front();
  constexpr int64_t matrix = 4 * 4 * 8, row = 4 * 8;
  EXPECT_EQ(traffic(fused), 2 * matrix + row);
  EXPECT_EQ(traffic_apart(fused), (2 * matrix + row) + 3 * matrix);
  EXPECT_EQ(traffic_apart(*graph.body().nodes[1]), 0);
}

}  // namespace
}  // namespace janus::graph
