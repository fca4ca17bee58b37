// What threads cost: a figure that makes sense, or none.
#include "base/parallel_overhead.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/options.h"
#include "base/thread_pool.h"

namespace janus {
namespace {

class ParallelOverhead : public testing::Test {
 protected:
  void SetUp() override { set_thread_count(2); }
};

TEST_F(ParallelOverhead, IsAFigureThatMakesSense) {
  for (const int threads : {2, 3}) {
    set_thread_count(threads);
    const auto cycles = parallel_overhead_cycles();
    ASSERT_TRUE(cycles.has_value());
    EXPECT_GE(*cycles, 0);  // on a busy machine it may be any
  }
}

TEST_F(ParallelOverhead, OneThreadHasNone) {
  set_thread_count(1);
  EXPECT_EQ(parallel_overhead_cycles(), std::nullopt);
}

TEST_F(ParallelOverhead, WithoutParallelWorkThereIsNone) {
  set_disabled({"parallel"});
  EXPECT_EQ(parallel_overhead_cycles(), std::nullopt);
  set_disabled({});
}

TEST_F(ParallelOverhead, InsideALoopThereIsNone) {
  std::atomic<int> figures = 0;
  parallel_for(2, 1, [&](int64_t, int64_t) { figures += parallel_overhead_cycles().has_value(); });
  EXPECT_EQ(figures, 0);
}

TEST_F(ParallelOverhead, NoneIsFoundWhileAnotherHasTheThreads) {
  std::atomic<int> inside = 0;
  std::atomic<bool> done = false;
  std::thread other([&] {
    parallel_for(2, 1, [&](int64_t, int64_t) {
      ++inside;
      while (!done) std::this_thread::yield();
    });
  });
  while (inside < 2) std::this_thread::yield();
  EXPECT_EQ(parallel_overhead_cycles(), std::nullopt);
  done = true;
  other.join();
}

TEST_F(ParallelOverhead, AForkedChildFindsItsOwn) {
  parallel_overhead_cycles();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a hang is a failure
    const auto cycles = parallel_overhead_cycles();
    _exit(cycles && *cycles >= 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace janus
