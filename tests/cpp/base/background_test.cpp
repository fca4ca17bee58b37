// Work in the background is done once and in order, whatever a step throws and whoever forks.
#include "base/background.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <thread>

namespace janus {
namespace {

bool ends(BackgroundWork& work) {
  for (int i = 0; i < 20000 && !work.is_done(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return work.is_done();
}

TEST(Background, StepsAreDoneInOrderInAnotherThread) {
  std::vector<int> seen;
  std::thread::id thread;
  BackgroundWork::Steps steps;
  for (int i = 0; i < 100; ++i)
    steps.emplace_back([&seen, &thread, i] {
      seen.push_back(i);
      thread = std::this_thread::get_id();
    });
  const auto work = BackgroundWork::start(std::move(steps));
  ASSERT_TRUE(ends(*work));
  ASSERT_EQ(seen.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(Background, NothingIsDoneAtOnce) { EXPECT_TRUE(BackgroundWork::start({})->is_done()); }

TEST(Background, AnErrorEndsTheWorkAndNoOther) {
  int done = 0;
  const auto bad =
      BackgroundWork::start({[] { throw std::runtime_error("broken"); }, [&] { done += 10; }});
  const auto good = BackgroundWork::start({[&] { ++done; }});
  ASSERT_TRUE(ends(*good));
  EXPECT_THROW(bad->is_done(), std::runtime_error);
  EXPECT_THROW(bad->is_done(), std::runtime_error);
  EXPECT_EQ(done, 1);
}

TEST(Background, NothingIsDoneBetweenSteps) {
  std::atomic<int> done = 0;
  BackgroundWork::Steps steps;
  for (int i = 0; i < 50; ++i) steps.emplace_back([&done] { ++done; });
  auto lock = BackgroundWork::between_steps();
  const auto work = BackgroundWork::start(std::move(steps));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(done, 0);
  lock.unlock();
  EXPECT_TRUE(ends(*work));
  EXPECT_EQ(done, 50);
}

TEST(Background, WhatNobodyWaitsForIsLeftOut) {
  std::atomic<int> done = 0;
  BackgroundWork::hold(true);
  auto abandoned = BackgroundWork::start({[&] { done += 10; }});
  const auto work = BackgroundWork::start({[&] { ++done; }});
  abandoned.reset();
  BackgroundWork::hold(false);
  EXPECT_TRUE(ends(*work));
  EXPECT_EQ(done, 1);
}

TEST(Background, WhatIsHeldGoesOnWhenItIsLetGo) {
  std::atomic<int> done = 0;
  BackgroundWork::hold(true);
  const auto work = BackgroundWork::start({[&] { ++done; }});
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(work->is_done());
  EXPECT_EQ(done, 0);
  BackgroundWork::hold(false);
  EXPECT_TRUE(ends(*work));
}

TEST(Background, AForkedChildGoesOnWhereItsParentWas) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> done = 0;
    BackgroundWork::Steps steps;
    for (int i = 0; i < 40; ++i)
      steps.emplace_back([&done] {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        ++done;
      });
    const auto work = BackgroundWork::start(std::move(steps));
    std::this_thread::sleep_for(std::chrono::microseconds(150 * round));
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(ends(*work) && done == 40 ? 0 : 1);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(ends(*work));
    EXPECT_EQ(done, 40);
  }
}

}  // namespace
}  // namespace janus
