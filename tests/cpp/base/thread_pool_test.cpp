// The thread pool covers every index once, survives exceptions, nesting, several users and a fork.
#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace janus {
namespace {

class ThreadPool : public testing::Test {
 protected:
  void SetUp() override { set_thread_count(4); }

  static bool covers_once(int64_t count, int64_t grain) {
    std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
    parallel_for(count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
    });
    for (const auto& visit : visits)
      if (visit != 1) return false;
    return true;
  }
};

TEST_F(ThreadPool, EveryIndexIsVisitedOnce) {
  for (int64_t count : {0, 1, 2, 3, 4, 5, 7, 63, 64, 65, 1000})
    for (int64_t grain : {1, 2, 16, 100}) EXPECT_TRUE(covers_once(count, grain)) << count;
}

TEST_F(ThreadPool, ManyShortLoopsInARow) {
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(covers_once(8, 1));
}

TEST_F(ThreadPool, ThreadCountMayChange) {
  for (int threads : {1, 3, 2, 8, 1, 5}) {
    set_thread_count(threads);
    EXPECT_TRUE(covers_once(100, 1));
  }
}

TEST_F(ThreadPool, NestedLoopsRunInTheCaller) {
  std::atomic<int> sum = 0;
  parallel_for(4, 1, [&](int64_t begin, int64_t end) {
    const auto outer = std::this_thread::get_id();
    parallel_for(4, 1, [&](int64_t inner_begin, int64_t inner_end) {
      EXPECT_EQ(std::this_thread::get_id(), outer);
      sum += static_cast<int>((end - begin) * (inner_end - inner_begin));
    });
  });
  EXPECT_EQ(sum, 16);
}

TEST_F(ThreadPool, AnExceptionComesBackAndThePoolLivesOn) {
  EXPECT_THROW(parallel_for(4, 1,
                            [](int64_t begin, int64_t) {
                              if (begin >= 2) throw std::runtime_error("piece");
                            }),
               std::runtime_error);
  EXPECT_TRUE(covers_once(100, 1));
}

TEST_F(ThreadPool, SeveralThreadsUseItAtOnce) {
  std::atomic<bool> good = true;
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user)
    users.emplace_back([&] {
      for (int i = 0; i < 200; ++i)
        if (!covers_once(50, 1)) good = false;
    });
  for (auto& user : users) user.join();
  EXPECT_TRUE(good);
}

TEST_F(ThreadPool, AForkedChildStartsAfresh) {
  ASSERT_TRUE(covers_once(100, 1));
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a hang is a failure
    _exit(covers_once(100, 1) && covers_once(7, 1) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(covers_once(100, 1));
}

}  // namespace
}  // namespace janus
