// The order of a body's nodes.
#include "execute/code/schedule.h"

#include <gtest/gtest.h>

#include "graph/op.h"
#include "graph/text.h"
#include "ops/list.h"

namespace janus::execute {
namespace {

TEST(Schedule, PutsGuardsFirstAndWritersLast) {
  const graph::Graph graph = graph::parse(R"(graph @f(%x: f32[2,2], %ok: bool) {
  %w = state {cell="w"} : f32[2,2]
  %n = fused %w, %x : f32[2,2] { (%p: f32[2,2], %q: f32[2,2])
    %one = constant {value=1} : i64
    %s = add %p, %q, %one : f32[2,2]
    yield %s
  }
  commit %n {cell="w"}
  %y = mm %x, %w : f32[2,2]
  guard %ok {id=0}
  return %y
}
)",
                                          ops::table());
  const Schedule schedule = make_schedule(graph.body());
  std::vector<std::string_view> names;
  for (const graph::Node* node : schedule.order) names.push_back(node->op->name);
  EXPECT_EQ(names, (std::vector<std::string_view>{"guard", "state", "mm", "fused"}));
  EXPECT_EQ(schedule.tail, 3U);
}

}  // namespace
}  // namespace janus::execute
