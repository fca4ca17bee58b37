// Work on the runner's thread is done in order, whatever it throws and whoever forks.
#include "base/graph_runner.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace janus {
namespace {

using Runs = std::vector<std::shared_ptr<GraphRunner::Run>>;

void sleep_some() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

/// Whether the child of a fork ends with success.
template <class Body>
bool holds_in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(GraphRunner, RunsInOrderOnAnotherThread) {
  std::vector<int> seen;
  std::thread::id thread;
  Runs runs;
  for (int i = 0; i < 100; ++i)
    runs.push_back(GraphRunner::start([&seen, &thread, i] {
      seen.push_back(i);
      thread = std::this_thread::get_id();
    }));
  runs.back()->wait();
  ASSERT_EQ(seen.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(GraphRunner, CallersGoOnMeanwhile) {
  std::atomic<bool> may_end = false;
  const auto run = GraphRunner::start([&] {
    while (!may_end) std::this_thread::yield();
  });
  EXPECT_FALSE(run->is_over());
  may_end = true;
  run->wait();
  EXPECT_TRUE(run->is_over());
}

TEST(GraphRunner, TellsHowLongItTook) {
  const auto run = GraphRunner::start(sleep_some);
  run->wait();
  EXPECT_GE(run->seconds(), 0.02);
}

TEST(GraphRunner, AnErrorIsTheWaitersAndEndsNothingElse) {
  int done = 0;
  const auto bad = GraphRunner::start([] { throw std::runtime_error("broken"); });
  const auto good = GraphRunner::start([&] { ++done; });
  EXPECT_THROW(bad->wait(), std::runtime_error);
  EXPECT_THROW(bad->wait(), std::runtime_error);
  good->wait();
  EXPECT_EQ(done, 1);
}

TEST(GraphRunner, AForkWaitsForTheRunAndTheChildHasItsResult) {
  int done = 0;
  const auto run = GraphRunner::start([&] {
    sleep_some();
    done = 7;
  });
  EXPECT_TRUE(holds_in_child([&] {
    run->wait();
    return done == 7;
  }));
  run->wait();
}

TEST(GraphRunner, TheChildRunsWhatHadNotBegun) {
  std::atomic<int> done = 0;
  Runs runs;
  for (int i = 0; i < 8; ++i)
    runs.push_back(GraphRunner::start([&] {
      sleep_some();
      ++done;
    }));
  EXPECT_TRUE(holds_in_child([&] {
    for (const auto& run : runs) run->wait();
    return done == 8;
  }));
  for (const auto& run : runs) run->wait();
  EXPECT_EQ(done, 8);
}

TEST(GraphRunner, TheChildHasAThreadOfItsOwn) {
  GraphRunner::start([] {})->wait();
  EXPECT_TRUE(holds_in_child([] {
    const auto caller = std::this_thread::get_id();
    std::thread::id thread;
    GraphRunner::start([&] { thread = std::this_thread::get_id(); })->wait();
    return thread != std::thread::id() && thread != caller;
  }));
}

}  // namespace
}  // namespace janus
