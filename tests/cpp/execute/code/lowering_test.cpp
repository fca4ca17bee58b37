// Graphs as code: what executes each node, and where slots are used last.
#include "execute/code/lowering.h"

#include <gtest/gtest.h>

#include <string_view>

#include "../slot_named.h"
#include "graph/op.h"
#include "graph/text.h"
#include "ops/list.h"

namespace janus::execute {
namespace {

class LoweringTest : public testing::Test {
 protected:
  explicit LoweringTest() : graph("f") {}

  void lower(const std::string& text) {
    graph = graph::parse(text, ops::table());
    code = make_code(graph);
  }

  uint32_t slot(std::string_view name) const { return slot_named(graph, name); }

  graph::Graph graph;
  Code code;
};

using Slots = std::vector<uint32_t>;

TEST_F(LoweringTest, SlotsDieWhereTheyAreUsedLast) {
  lower(R"(graph @f(%x: f32[2,2], %w: f32[2,2]) {
  %a = mm %x, %w : f32[2,2]
  %b = mm %a, %a : f32[2,2]
  %c = mm %b, %a : f32[2,2]
  return %c
}
)");
  const auto& instructions = code.body.instructions;
  ASSERT_EQ(instructions.size(), 3U);
  EXPECT_EQ(instructions[0].action, Action::operation);
  EXPECT_EQ(instructions[0].dead, Slots{});  // inputs are the caller's
  EXPECT_EQ(instructions[1].dead, Slots{});
  EXPECT_EQ(instructions[2].dead, (Slots{slot("b"), slot("a")}));
  EXPECT_EQ(instructions[1].moved_inputs, (std::vector<bool>{false, false}));
  EXPECT_EQ(instructions[2].moved_inputs, (std::vector<bool>{true, true}));
  EXPECT_EQ(code.body.results, Slots{slot("c")});
}

TEST_F(LoweringTest, BlocksHandOverWhatNothingElseNeeds) {
  lower(R"(graph @f(%x: f32[2,2], %ok: bool) {
  %a, %b = if %ok : f32[2,2], f32[2,2] {
    %p = mm %x, %x : f32[2,2]
    yield %p, %x
  } else {
    yield %x, %x
  }
  return %a, %b
}
)");
  const Instruction& choice = code.body.instructions.back();
  ASSERT_EQ(choice.action, Action::choose);
  EXPECT_EQ(choice.blocks[0].own_results, (std::vector<bool>{true, false}));
  EXPECT_EQ(choice.blocks[1].own_results, (std::vector<bool>{false, false}));
  EXPECT_TRUE(code.control);
  EXPECT_EQ(choice.operands().front(), slot("ok"));
}

TEST_F(LoweringTest, CellsHaveSlotsOfTheirOwn) {
  lower(R"(graph @f(%n: i64) {
  %w = state {cell="w"} : f32[2]
  %v = state {cell="v"} : f32[2]
  %m = scalar_add %n, %n : i64
  commit %v {cell="w"}
  return %m
}
)");
  EXPECT_EQ(code.cells, (std::vector<std::string>{"w", "v"}));
  ASSERT_EQ(code.commits.size(), 1U);
  EXPECT_EQ(code.commits[0].cell, 0U);
  EXPECT_EQ(code.commits[0].slot, slot("v"));
  EXPECT_EQ(cell_slot(code, 1), code.slot_count + 1);
  EXPECT_EQ(code.body.instructions.back().action, Action::number);
}

}  // namespace
}  // namespace janus::execute
