// Which of two ways is given up, by what their runs take: no clock is asked.
#include "base/ab_test.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace janus {
namespace {

/// How many runs it took to decide.
int runs_until_over(AbTest& test, const std::function<double(bool is_old, int run)>& time) {
  int run = 0;
  while (!test.is_over()) {
    test.add(time(test.next_is_old(), run));
    ++run;
  }
  return run;
}

TEST(AbTest, KeepsWhatIsMuchFasterAfterThreeRunsOfEach) {
  AbTest test;
  EXPECT_EQ(runs_until_over(test, [](bool is_old, int run) { return (is_old ? 5 : 2) + run % 3; }),
            6);
  EXPECT_EQ(test.verdict(), AbTest::Verdict::kept);
}

TEST(AbTest, GivesUpWhatIsSlower) {
  AbTest test;
  EXPECT_EQ(runs_until_over(test, [](bool is_old, int) { return is_old ? 1.0 : 1.1; }), 16);
  EXPECT_EQ(test.verdict(), AbTest::Verdict::given_up);
  EXPECT_DOUBLE_EQ(test.with_new(), 1.1);
  EXPECT_DOUBLE_EQ(test.with_old(), 1.0);
  EXPECT_FALSE(test.next_is_old());
}

TEST(AbTest, KeepsWhatIsAsGood) {
  AbTest test;
  EXPECT_EQ(runs_until_over(test, [](bool is_old, int) { return is_old ? 1.0 : 1.01; }), 80);
  EXPECT_EQ(test.verdict(), AbTest::Verdict::kept);
}

TEST(AbTest, OutliersDecideNothing) {
  AbTest test;
  runs_until_over(test, [](bool is_old, int run) {
    return run % 7 == 0 ? 100.0 : (is_old ? 1.5 : 1.0) + 0.01 * run;
  });
  EXPECT_EQ(test.verdict(), AbTest::Verdict::kept);
}

TEST(AbTest, RunsThatDifferByTurnsDecideNothing) {
  for (const int period : {2, 3, 4, 5, 6, 8}) {
    AbTest test;
    runs_until_over(test, [&](bool, int run) { return run % period == 0 ? 3.0 : 1.0; });
    EXPECT_EQ(test.verdict(), AbTest::Verdict::kept) << period;
  }
}

TEST(AbTest, OfTheSlowerWayFewInAHundredAreKeptAndOfTheFasterFewGivenUp) {
  std::mt19937 random(3);
  std::lognormal_distribution<double> work(0, 0.3);
  const auto given_up = [&](double factor) {
    int count = 0;
    for (int k = 0; k < 200; ++k) {
      AbTest test;
      runs_until_over(test, [&](bool is_old, int) { return work(random) * (is_old ? 1 : factor); });
      count += test.verdict() == AbTest::Verdict::given_up ? 1 : 0;
    }
    return count;
  };
  EXPECT_LE(given_up(0.8), 4);
  EXPECT_GE(given_up(1.6), 190);
}

}  // namespace
}  // namespace janus
