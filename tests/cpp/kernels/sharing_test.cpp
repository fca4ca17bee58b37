// Which work is worth several threads: kept figures, their bounds, and what is made of them.
#include "kernels/sharing.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "../jit/temporary_folder.h"
#include "base/options.h"
#include "base/policy.h"
#include "base/thread_pool.h"

namespace janus::kernels {
namespace {

namespace files = std::filesystem;
using jit::TuningCache;

class SharingTest : public jit::TestWithFolder {
 protected:
  std::string folder() const { return root_ / "ways"; }

  /// The figure of a process that measures so much, and how often it measured.
  int figure(std::optional<double> measured) {
    TuningCache kept(folder(), "this machine");
    return kept_or_measured(kept, "threads", [&] {
      ++measurements_;
      return measured;
    });
  }

  int measurements_ = 0;
};

TEST_F(SharingTest, WhatWasMeasuredIsKept) {
  EXPECT_EQ(figure(5000), 5000);
  EXPECT_EQ(figure(9000), 5000);
  EXPECT_EQ(measurements_, 1);
}

TEST_F(SharingTest, FiguresAreBounded) {
  EXPECT_EQ(figure(3), policy::kLeastCycles);
  files::remove_all(folder());
  EXPECT_EQ(figure(1e12), policy::kMostCycles);
}

TEST_F(SharingTest, ABusyMachineCountsForOneProcess) {
  EXPECT_EQ(figure(50'000), 50'000);
  EXPECT_EQ(figure(4000), 4000);
  EXPECT_EQ(figure(50'000), 4000);
}

TEST_F(SharingTest, WhereNothingCanBeMeasuredNothingIsKept) {
  EXPECT_EQ(figure(std::nullopt), policy::kUsualCycles);
  EXPECT_EQ(figure(4000), 4000);
}

TEST_F(SharingTest, WhatIsDamagedIsMeasuredAnew) {
  figure(5000);
  const files::path path = files::directory_iterator(folder())->path();
  files::resize_file(path, files::file_size(path) - 1);
  EXPECT_EQ(figure(6000), 6000);
  EXPECT_EQ(figure(7000), 6000);
}

TEST_F(SharingTest, WhatIsKeptAndMakesNoSenseIsMeasuredAnew) {
  for (const int senseless : {0, -5, policy::kMostCycles + 1}) {
    TuningCache(folder(), "this machine").keep("threads", senseless);
    EXPECT_EQ(figure(6000), 6000);
    files::remove_all(folder());
  }
}

TEST_F(SharingTest, APlaceThatCanNotBeWrittenIsDoneWithout) {
  TuningCache kept("/proc/no/such/place", "this machine");
  testing::internal::CaptureStderr();
  EXPECT_EQ(kept_or_measured(kept, "threads", [] { return 5000.0; }), 5000);
  EXPECT_EQ(kept_or_measured(kept, "threads", [] { return 7000.0; }), 5000);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said.find("torchjanus:"), said.rfind("torchjanus:")) << said;
}

TEST_F(SharingTest, OneThreadSharesNothing) {
  set_thread_count(1);
  EXPECT_FALSE(is_worth_sharing(int64_t{1} << 40));
  EXPECT_EQ(least_pieces(int64_t{1} << 40, 100), 100);
}

TEST_F(SharingTest, TheNumberOfThreadsMayChangeBetweenCalls) {
  for (const int threads : {2, 1, 3, 2, 9, 1, 2}) {
    set_thread_count(threads);
    EXPECT_EQ(is_worth_sharing(int64_t{1} << 40), threads > 1);
    EXPECT_FALSE(is_worth_sharing(2 * policy::kLeastWorkPerThread - 1));
    const int64_t least = work_per_thread();
    EXPECT_GE(least, policy::kLeastWorkPerThread);
    EXPECT_EQ(work_per_thread(), least);  // measured once
  }
}

TEST_F(SharingTest, PiecesAddUpToWhatAThreadIsGiven) {
  set_thread_count(2);
  const int64_t least = work_per_thread();
  EXPECT_EQ(least_pieces(1000 * least, 1000), 1);
  const int64_t work = 100 * least, some = least_pieces(work, 1000);
  EXPECT_GE(some * (work / 1000), least);
  EXPECT_LT((some - 1) * (work / 1000), least);
  EXPECT_EQ(least_pieces(0, 0), 1);
  EXPECT_EQ(least_pieces(1000, 7), 7);
}

TEST_F(SharingTest, ItCanBeSwitchedOff) {
  const pid_t child = fork();
  if (child == 0) {
    set_disabled({std::string(kThreadCostSwitch.name)});
    set_thread_count(11);
    const int64_t usual = work_per_thread();
    set_thread_count(12);
    _exit(work_per_thread() == usual ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(SharingTest, SeveralThreadsMayAskAtOnce) {
  std::vector<std::thread> users;
  for (int user = 0; user < 4; ++user)
    users.emplace_back([] {
      set_thread_count(5);
      EXPECT_TRUE(is_worth_sharing(int64_t{1} << 40));
    });
  for (auto& user : users) user.join();
}

}  // namespace
}  // namespace janus::kernels
