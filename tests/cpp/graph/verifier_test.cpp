#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/builder.h"
#include "graph/text.h"
#include "ops/list.h"

namespace janus::graph {
namespace {

using testing::HasSubstr;
using testing::Not;

Graph read(std::string_view text) { return parse(text, ops::table()); }

std::string complaint(const Graph& graph) {
  try {
    verify(graph);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "none";
}

/// x → a → b → c, each a detach.
class VerifierTest : public testing::Test {
 protected:
  VerifierTest() : graph("g"), builder(graph) {
    Value* value = builder.input(Type::tensor(DType::f32, {2}), "x");
    for (const char* name : {"a", "b", "c"}) {
      value = op::detach(builder, {value});
      value->name = name;
    }
    graph.body().results = {value};
  }
  Node& node(size_t index) { return *graph.body().nodes[index]; }

  Graph graph;
  Builder builder;
};

TEST_F(VerifierTest, accepts_what_the_builder_builds) { EXPECT_EQ(complaint(graph), "none"); }

TEST_F(VerifierTest, shows_the_lines_around_the_node) {
  node(1).outputs[0]->type = Type::tensor(DType::f32, {3});
  const std::string message = complaint(graph);
  EXPECT_THAT(message, HasSubstr("result 0 of detach is f32[3], should be f32[2]"));
  EXPECT_THAT(message, HasSubstr(">   %b = detach %a : f32[3]"));
  EXPECT_THAT(message, HasSubstr("    %a = detach %x : f32[2]"));
  EXPECT_THAT(message, HasSubstr("    %c = detach %b"));
}

TEST_F(VerifierTest, shows_ten_lines_before_and_after) {
  for (int i = 0; i < 40; ++i) op::detach(builder, {graph.body().results[0]});
  node(20).outputs[0]->type = Type::i64();
  const std::string message = complaint(graph);
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 22);
  EXPECT_THAT(message, Not(HasSubstr("graph @g(")));
}

TEST_F(VerifierTest, finds_operands_that_are_not_visible) {
  std::swap(graph.body().nodes[0], graph.body().nodes[1]);
  EXPECT_THAT(complaint(graph), HasSubstr("operand %a (f32[2]) is not visible here"));
}

TEST_F(VerifierTest, finds_missing_operands) {
  node(0).inputs[0] = nullptr;
  EXPECT_THAT(complaint(graph), HasSubstr("an operand is missing"));
}

TEST_F(VerifierTest, finds_values_of_another_graph) {
  Graph other("other");
  node(0).inputs[0] = Builder(other).input(Type::tensor(DType::f32, {2}), "y");
  EXPECT_THAT(complaint(graph), HasSubstr("is not visible here"));
}

TEST_F(VerifierTest, finds_nodes_that_stand_twice) {
  graph.body().nodes.push_back(graph.body().nodes[2]);
  EXPECT_THAT(complaint(graph), HasSubstr("is defined twice"));
}

TEST_F(VerifierTest, finds_wrong_attributes) {
  node(0).attributes.set("dim", int64_t{1});
  EXPECT_THAT(complaint(graph), HasSubstr("detach: there is no attribute dim"));
  node(0).attributes = {{"_note", int64_t{1}}};
  EXPECT_EQ(complaint(graph), "none") << "passes may leave notes";
}

TEST_F(VerifierTest, finds_results_that_do_not_know_their_node) {
  node(0).outputs[0]->index = 1;
  EXPECT_THAT(complaint(graph), HasSubstr("result 0 does not know its node"));
}

TEST(Verifier, state_is_written_once_and_in_the_body) {
  EXPECT_THAT(complaint(read(R"(graph @g(%x: f32[2]) {
  commit %x {cell="a"}
  commit %x {cell="a"}
  return
})")),
              HasSubstr("commit of cell a stands twice"));
  EXPECT_THAT(complaint(read(R"(graph @g(%x: f32[2], %b: bool) {
  if %b {
    commit %x {cell="a"}
    yield
  } else {
    yield
  }
  return
})")),
              HasSubstr("state is written inside a nested block"));
  EXPECT_EQ(complaint(read(R"(graph @g(%x: f32[2]) {
  commit %x {cell="a"}
  rebind %x {cell="a"}
  return
})")),
            "none");
}

TEST(Verifier, reads_of_a_cell_agree) {
  EXPECT_THAT(complaint(read(R"(graph @g() {
  %a = state {cell="w"} : f32[2]
  %b = state {cell="w"} : f32[3]
  return
})")),
              HasSubstr("cell w is f32[2] elsewhere"));
}

TEST(Verifier, fused_blocks_see_nothing_from_outside) {
  Graph graph = read(R"(graph @g(%x: f32[2]) {
  %y = fused %x : f32[2] { (%p: f32[2])
    %r = relu %p : f32[2]
    yield %r
  }
  return %y
})");
  EXPECT_EQ(complaint(graph), "none");
  graph.body().nodes[0]->blocks[0]->nodes[0]->inputs[0] = graph.body().parameters[0];
  EXPECT_THAT(complaint(graph), HasSubstr("operand %x (f32[2]) is not visible here"));
}

}  // namespace
}  // namespace janus::graph
