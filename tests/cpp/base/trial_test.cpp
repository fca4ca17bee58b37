// Which of two ways is given up, by what their runs take: no clock is asked.
#include "base/trial.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace janus {
namespace {

/// How many runs it took to decide.
int runs_until_over(Trial& trial, const std::function<double(bool is_old, int run)>& time) {
  int run = 0;
  while (!trial.is_over()) {
    trial.add(time(trial.next_is_old(), run));
    ++run;
  }
  return run;
}

TEST(Trial, KeepsWhatIsMuchFasterAfterThreeRunsOfEach) {
  Trial trial;
  EXPECT_EQ(runs_until_over(trial, [](bool is_old, int run) { return (is_old ? 5 : 2) + run % 3; }),
            6);
  EXPECT_EQ(trial.verdict(), Trial::Verdict::kept);
}

TEST(Trial, GivesUpWhatIsSlower) {
  Trial trial;
  EXPECT_EQ(runs_until_over(trial, [](bool is_old, int) { return is_old ? 1.0 : 1.1; }), 16);
  EXPECT_EQ(trial.verdict(), Trial::Verdict::given_up);
  EXPECT_DOUBLE_EQ(trial.with_new(), 1.1);
  EXPECT_DOUBLE_EQ(trial.with_old(), 1.0);
  EXPECT_FALSE(trial.next_is_old());
}

TEST(Trial, KeepsWhatIsAsGood) {
  Trial trial;
  EXPECT_EQ(runs_until_over(trial, [](bool is_old, int) { return is_old ? 1.0 : 1.01; }), 80);
  EXPECT_EQ(trial.verdict(), Trial::Verdict::kept);
}

TEST(Trial, OutliersDecideNothing) {
  Trial trial;
  runs_until_over(trial, [](bool is_old, int run) {
    return run % 7 == 0 ? 100.0 : (is_old ? 1.5 : 1.0) + 0.01 * run;
  });
  EXPECT_EQ(trial.verdict(), Trial::Verdict::kept);
}

TEST(Trial, RunsThatDifferByTurnsDecideNothing) {
  for (const int period : {2, 3, 4, 5, 6, 8}) {
    Trial trial;
    runs_until_over(trial, [&](bool, int run) { return run % period == 0 ? 3.0 : 1.0; });
    EXPECT_EQ(trial.verdict(), Trial::Verdict::kept) << period;
  }
}

TEST(Trial, OfTheSlowerWayFewInAHundredAreKeptAndOfTheFasterFewGivenUp) {
  std::mt19937 random(3);
  std::lognormal_distribution<double> work(0, 0.3);
  const auto given_up = [&](double factor) {
    int count = 0;
    for (int k = 0; k < 200; ++k) {
      Trial trial;
      runs_until_over(trial,
                      [&](bool is_old, int) { return work(random) * (is_old ? 1 : factor); });
      count += trial.verdict() == Trial::Verdict::given_up ? 1 : 0;
    }
    return count;
  };
  EXPECT_LE(given_up(0.8), 4);
  EXPECT_GE(given_up(1.6), 190);
}

}  // namespace
}  // namespace janus
