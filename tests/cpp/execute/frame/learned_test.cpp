// What is learned takes room only for those slots of which something is known.
#include "execute/frame/learned.h"

#include <gtest/gtest.h>

namespace janus::execute {
namespace {

TEST(LearnedSlots, KnowNothingOfOtherSlots) {
  LearnedSlots learned;
  learned.of(5) = {.origin = Learned::Origin::computed, .root = 5};
  const Learned& first = learned.of(5);
  learned.of(900).origin = Learned::Origin::input;
  EXPECT_EQ(&first, &learned.of(5));  // stays where it is
  EXPECT_TRUE(learned[5].is_tensor());
  EXPECT_FALSE(learned[4].is_tensor());
  EXPECT_FALSE(learned[100'000].is_tensor());
  EXPECT_EQ(learned.end_slot(), 901U);
  EXPECT_EQ(learned.all().size(), 2U);
  learned.clear();
  EXPECT_EQ(learned.end_slot(), 0U);
}

}  // namespace
}  // namespace janus::execute
