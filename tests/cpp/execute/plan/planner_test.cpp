// The steps of a plan, as text.
#include "execute/plan/planner.h"

#include <gtest/gtest.h>

#include "execute/memory/arena.h"
#include "execute/plan/plan_text.h"
#include "learned_program.h"

namespace janus::execute {
namespace {

TEST(Planner, StepsOfAChainOfProducts) {
  fake::Library library;
  const Slot x = fake::tensor(library, {2, 2}, {1, 2, 3, 4});
  LearnedProgram program(library, R"(graph @f(%x: f32[2,2], %ok: bool) {
  guard %ok {id=0}
  %a = mm %x, %x : f32[2,2]
  %v = t %a : f32[2,2]
  %b = mm %v, %x : f32[2,2]
  return %b
}
)",
                         {x, Slot::of(true)});
  ASSERT_TRUE(program.ran);
  Memory arena;
  const Plan plan = make_plan(program.code, library, program.frame, [&](int64_t bytes) {
    arena = Memory(bytes);
    return arena.data();
  });
  EXPECT_EQ(describe(plan), R"(arena of 64 bytes
  guard $1
  $2 = mm $0, $0
  new $4 f32[2,2]
  $4 = mm $3, $0
)");
}

}  // namespace
}  // namespace janus::execute
