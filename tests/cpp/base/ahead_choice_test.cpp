// Running ahead is kept where it is faster, and hardly tried where it can't be.
#include "base/ahead_choice.h"

#include <gtest/gtest.h>

#include "base/policy.h"

namespace janus {
namespace {

/// A loop with one look an iteration, whose time is simulated.
struct Loop {
  double python = 1, segments = 1;  ///< seconds of an iteration
  double ahead = 1.2;               ///< of an iteration that overlaps
  bool is_new = false;              ///< each iteration brings something new

  AheadChoice choice;
  AheadChoice::Reading reading;
  int stretches = 0, iterations_ahead = 0;

  void iterate() {
    const bool overlaps = choice.is_ahead();
    iterations_ahead += overlaps ? 1 : 0;
    reading.now += overlaps ? ahead : python + segments;
    reading.in_segments += overlaps ? 0 : segments;
    reading.noted += 100;
    reading.in_graphs += 100;
    reading.ahead += overlaps ? 1 : 0;
    reading.news += is_new ? 1 : 0;
    if (!choice.leaves_work()) return;
    ++stretches;
    choice.end_stretch(reading);
  }
  void iterate(int64_t times) {
    for (int64_t i = 0; i < times; ++i) iterate();
  }
};

TEST(AheadChoice, BeginsWithoutRunningAhead) { EXPECT_FALSE(AheadChoice().is_ahead()); }

TEST(AheadChoice, KeepsWhatIsFaster) {
  Loop loop;
  loop.iterate(policy::kLeastLooksOfChoice);
  EXPECT_TRUE(loop.choice.is_ahead());
}

TEST(AheadChoice, LeavesWhatIsSlower) {
  Loop loop{.ahead = 2.5};
  loop.iterate(policy::kLeastLooksOfChoice);
  EXPECT_FALSE(loop.choice.is_ahead());
  EXPECT_GT(loop.iterations_ahead, 0);
}

TEST(AheadChoice, LeavesWhatIsNoFaster) {
  Loop loop{.ahead = 2};
  loop.iterate(policy::kLeastLooksOfChoice);
  EXPECT_FALSE(loop.choice.is_ahead());
  EXPECT_GT(loop.iterations_ahead, 0);
}

TEST(AheadChoice, DoesNotTryWhereHardlyAnythingCanOverlap) {
  Loop loop{.python = 0.05};
  loop.iterate(policy::kLeastLooksOfChoice / 2);
  EXPECT_EQ(loop.iterations_ahead, 0);
  EXPECT_LE(loop.stretches, policy::kStretchesOfLook + 1);
}

TEST(AheadChoice, GivesUpWhereEachStretchIsNew) {
  Loop loop{.is_new = true};
  loop.iterate(4 * policy::kLooksOfStretch * policy::kMostStretches);
  EXPECT_FALSE(loop.choice.is_ahead());
  EXPECT_LE(loop.stretches, policy::kMostStretches);
}

TEST(AheadChoice, LooksAgainEverMoreRarely) {
  Loop loop{.ahead = 2.5};
  loop.iterate(policy::kLeastLooksOfChoice);
  loop.ahead = 1.2;
  loop.iterate(policy::kLeastLooksOfChoice);
  EXPECT_TRUE(loop.choice.is_ahead());
  const int before = loop.stretches;
  loop.iterate(policy::kLeastLooksOfChoice);
  EXPECT_EQ(loop.stretches, before);
}

TEST(AheadChoice, KeepsWithoutMeasuring) {
  Loop loop{.ahead = 2.5};
  loop.choice.keep();
  loop.iterate(100);
  EXPECT_EQ(loop.iterations_ahead, 100);
  EXPECT_EQ(loop.stretches, 0);
}

}  // namespace
}  // namespace janus
