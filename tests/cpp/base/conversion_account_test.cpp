// What may be spent when: no clock is asked.
#include "base/conversion_account.h"

#include <gtest/gtest.h>

namespace janus {
namespace {

/// Spent already: nearly all that is free.
constexpr double kSpent = ConversionAccount::kFree - 40;

/// The program's milliseconds at which work of this cost may begin; -1: never within an hour.
double covered_at(const ConversionAccount& account, double cost) {
  for (double used = 0; used < 3.6e6; used += 10)
    if (account.covers(cost, used, 0)) return used;
  return -1;
}

TEST(ConversionAccount, CoversMoreTheLongerTheProgramRuns) {
  const ConversionAccount account(kSpent);
  EXPECT_FALSE(account.covers(1000, 1000, 0));
  const double once = covered_at(account, 500), twice = covered_at(account, 1000);
  EXPECT_GT(once, 500 * 20);
  EXPECT_GT(twice, 2 * once);
}

TEST(ConversionAccount, WhatIsSpentAtTheStartIsPaidFirst) {
  const ConversionAccount cheap(kSpent), dear(kSpent + 200);
  EXPECT_EQ(covered_at(dear, 300), covered_at(cheap, 500));
}

TEST(ConversionAccount, SpendingNeverExceedsTheShare) {
  ConversionAccount account(kSpent);
  for (double used = 0; used < 1e6; used += 7) {
    if (account.covers(90, used, 0)) account.spend(90);
    EXPECT_LE(account.spent(), kSpent + 100 + 0.02 * used);
  }
}

TEST(ConversionAccount, SavingsPayForFurtherWork) {
  ConversionAccount account(kSpent);
  EXPECT_FALSE(account.covers(300, 2000, 0));
  account.save(400);
  EXPECT_TRUE(account.covers(300, 2000, 0));
}

TEST(ConversionAccount, WorkThatGoesOnIsSetAside) {
  ConversionAccount account(kSpent);
  const double used = covered_at(account, 300);
  account.reserve(300);
  EXPECT_FALSE(account.covers(300, used, 0));
  account.reserve(-300);
  EXPECT_TRUE(account.covers(300, used, 0));
}

TEST(ConversionAccount, HopefulCodeMayOverdrawItUntilOthersFailed) {
  ConversionAccount account(kSpent);
  EXPECT_FALSE(account.covers(350, 4000, 0));
  EXPECT_TRUE(account.covers(1300, 4000, 3000));
  account.failed(1);  // as code that did nothing with tensors
  EXPECT_TRUE(account.covers(1300, 4000, 3000));
  account.failed(100);
  EXPECT_FALSE(account.covers(1300, 4000, 3000));
  account.succeeded();
  EXPECT_TRUE(account.covers(1300, 4000, 3000));
}

TEST(ConversionAccount, CostsAreLearnt) {
  ConversionAccount account(kSpent);
  const double at_first = account.estimate(200);
  EXPECT_GT(account.estimate(400), at_first);
  for (int i = 0; i < 10; ++i) account.learn(200, 3 * at_first);
  EXPECT_GT(account.estimate(200), 2 * at_first);
  ConversionAccount quick(kSpent);
  for (int i = 0; i < 10; ++i) quick.learn(200, at_first / 3);
  EXPECT_LT(quick.estimate(200), at_first / 2);
  EXPECT_GT(quick.estimate(0), 0);
}

TEST(ConversionAccount, OneOfTheProcessUnlessTheSwitchIsOff) {
  close_conversion_account();
  set_disabled({"budget"});
  open_conversion_account(0);
  EXPECT_EQ(conversion_account(), nullptr);
  set_disabled({});
  open_conversion_account(5);
  ASSERT_NE(conversion_account(), nullptr);
  open_conversion_account(7);
  EXPECT_EQ(conversion_account()->spent(), 5);
  close_conversion_account();
}

}  // namespace
}  // namespace janus
