#include "passes/lowering/decompose.h"

#include <gtest/gtest.h>

#include "../support.h"
#include "graph/op.h"

namespace janus::passes {
namespace {

TEST(Decompose, LeavesNoCompositeOperatorInNestedBlocksNeither) {
  const graph::Graph graph = decompose(parsed(R"(
graph @f(%x: f32[2,64,4,4], %w: f32[64], %b: f32[64], %m: f32[64], %v: f32[64], %c: bool) {
  %momentum = constant {value=0.1} : f64
  %eps = constant {value=1e-05} : f64
  %z = if %c : f32[2,64,4,4] {
    %y, %m2, %v2 = batch_norm %x, %w, %b, %m, %v, %momentum, %eps {training=false, cudnn_enabled=true} : f32[2,64,4,4], none, none
    yield %y
  } else {
    yield %x
  }
  return %z
})"));
  size_t nodes = 0;
  graph::for_each_node(graph.body(), [&](const graph::Node& node) {
    EXPECT_FALSE(node.op->is(graph::Trait::composite)) << node.op->name;
    ++nodes;
  });
  EXPECT_GT(nodes, 4U);
}

}  // namespace
}  // namespace janus::passes
