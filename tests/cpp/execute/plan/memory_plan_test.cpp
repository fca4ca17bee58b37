// Where the memory of values lies, decided from one ordinary run.
#include "execute/plan/memory_plan.h"

#include <gtest/gtest.h>

#include "execute/plan/beside.h"
#include "execute/plan/certainty.h"
#include "learned_program.h"

namespace janus::execute {
namespace {

class MemoryPlanTest : public testing::Test {
 protected:
  void plan(const std::string& text, const std::vector<Slot>& inputs,
            const std::vector<Slot>& cells = {}) {
    program.emplace(library, text, inputs, cells);
    ASSERT_TRUE(program->ran);
    const PlannedCode& planned = program->planned;
    const auto beside = find_groups_beside(program->planned, program->frame);
    lifetimes.emplace(program->code, planned, beside, program->frame.learned);
    const CertainPart certain =
        find_certain_part(program->code, planned, *lifetimes, beside, library, program->frame);
    memory.emplace(program->code, planned, *lifetimes, certain.begin, program->frame);
  }
  uint32_t slot(std::string_view name) const { return program->slot(name); }
  Place place(std::string_view name) const { return memory->place(slot(name)); }

  fake::Library library;
  std::optional<LearnedProgram> program;
  std::optional<Lifetimes> lifetimes;
  std::optional<MemoryPlan> memory;
};

TEST_F(MemoryPlanTest, WhatStaysInsideLiesInTheArena) {
  plan(R"(graph @f(%x: f32[2,2]) {
  %a = mm %x, %x : f32[2,2]
  %b = mm %a, %x : f32[2,2]
  %c = mm %b, %x : f32[2,2]
  %d = mm %c, %x : f32[2,2]
  return %d
}
)",
       {fake::tensor(library, {2, 2}, {1, 2, 3, 4})});
  EXPECT_EQ(place("x"), Place::outside);
  EXPECT_EQ(place("a"), Place::arena);
  EXPECT_EQ(place("d"), Place::fresh);
  EXPECT_TRUE(memory->leaves(slot("d")));
  EXPECT_FALSE(memory->stretch(slot("a")).overlaps(memory->stretch(slot("b"))));
  EXPECT_EQ(memory->offset(slot("a")), memory->offset(slot("c")));  // a is dead by then
  EXPECT_EQ(memory->arena_bytes(), 2 * arena_alignment);
  EXPECT_EQ(memory->making(program->planned.instructions[0]), Making::into);
}

constexpr const char* update = R"(graph @step(%g: f32[3]) {
  %w = state {cell="w"} : f32[3]
  %n = fused %w, %g : f32[3] { (%p: f32[3], %q: f32[3])
    %s = mul %p, %q : f32[3]
    yield %s
  }
  commit %n {cell="w"}
  return %RESULT
}
)";

std::string update_that_gives(const std::string& result) {
  std::string text = update;
  return text.replace(text.find("RESULT"), 6, result);
}

TEST_F(MemoryPlanTest, NewContentsAreComputedInTheCell) {
  plan(update_that_gives("g"), {fake::tensor(library, {3}, {1, 2, 3})},
       {fake::tensor(library, {3}, {4, 5, 6})});
  EXPECT_EQ(place("n"), Place::cell);
  EXPECT_EQ(memory->cell(slot("n")), cell_slot(program->code, 0));
  EXPECT_TRUE(memory->leaving().commits.empty());
}

TEST_F(MemoryPlanTest, OldContentsThatLeaveAreCopied) {
  plan(update_that_gives("w"), {fake::tensor(library, {3}, {1, 2, 3})},
       {fake::tensor(library, {3}, {4, 5, 6})});
  ASSERT_EQ(memory->leaving().gifts.size(), 1U);
  const Gift& gift = memory->leaving().gifts[0];
  EXPECT_EQ(gift.value, slot("w"));
  EXPECT_TRUE(gift.early);
  EXPECT_EQ(memory->leaving().results, std::vector<uint32_t>{gift.clone});
}

}  // namespace
}  // namespace janus::execute
