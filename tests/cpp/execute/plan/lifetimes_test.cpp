// Which tensors share memory, and for how long it is needed.
#include "execute/plan/lifetimes.h"

#include <gtest/gtest.h>

#include "execute/plan/beside.h"
#include "learned_program.h"

namespace janus::execute {
namespace {

class LifetimesTest : public testing::Test {
 protected:
  void learn(const std::string& text, const std::vector<Slot>& inputs) {
    program.emplace(library, text, inputs);
    ASSERT_TRUE(program->ran);
    const auto beside = find_groups_beside(program->planned, program->frame);
    lifetimes.emplace(program->code, program->planned, beside, program->frame.learned);
  }
  const Lifetime& of(std::string_view name) const { return lifetimes->of(program->slot(name)); }

  fake::Library library;
  std::optional<LearnedProgram> program;
  std::optional<Lifetimes> lifetimes;
};

TEST_F(LifetimesTest, ViewsLiveAsOneWithTheirRoot) {
  learn(R"(graph @f(%x: f32[2,2]) {
  %a = mm %x, %x : f32[2,2]
  %v = t %a : f32[2,2]
  %b = mm %x, %x : f32[2,2]
  %c = mm %b, %v : f32[2,2]
  %d = mm %c, %x : f32[2,2]
  return %d
}
)",
        {fake::tensor(library, {2, 2}, {1, 2, 3, 4})});
  EXPECT_EQ(of("a").begin(), 0U);
  EXPECT_EQ(of("a").last_use, 3U);
  EXPECT_EQ(&of("v"), &of("a"));
  EXPECT_EQ(lifetimes->uses(program->slot("v")), (std::vector<size_t>{1, 3}));
  EXPECT_EQ(of("a").bytes, 16);
  EXPECT_TRUE(of("x").is_outside);
  EXPECT_FALSE(of("c").escapes);
  EXPECT_TRUE(of("d").escapes);
  EXPECT_EQ(of("d").last_use, 5U);  // the end
}

}  // namespace
}  // namespace janus::execute
