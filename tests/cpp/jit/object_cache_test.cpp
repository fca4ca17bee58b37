// Objects on disk: found again, never damaged ones or another key's; and what can go wrong with
// files.
#include "jit/object_cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "temporary_folder.h"

namespace janus::jit {
namespace {

namespace files = std::filesystem;

class ObjectFilesTest : public TestWithFolder {
 protected:
  std::string folder() const { return root_ / "cache" / "kernels"; }
  std::vector<files::path> all_files() const {
    std::vector<files::path> all;
    for (const auto& entry : files::directory_iterator(folder())) all.push_back(entry.path());
    return all;
  }
};

std::string text_of(const files::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(ObjectFilesTest, AreFoundByAnotherProcessAndReadableByNobodyElse) {
  const std::string object("a\0b", 3);
  ObjectCache(folder()).keep("key", object);
  EXPECT_EQ(ObjectCache(folder()).find("key"), object);
  EXPECT_EQ(ObjectCache(folder()).find("other key"), std::nullopt);
  struct stat status;
  ASSERT_EQ(stat(folder().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  ASSERT_EQ(stat(all_files().front().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(ObjectFilesTest, NothingIsKeptWithoutAFolder) {
  ObjectCache none("");
  none.keep("key", "object");
  EXPECT_EQ(none.find("key"), std::nullopt);
}

TEST_F(ObjectFilesTest, DamageIsNoticedWhereverItIs) {
  ObjectCache(folder()).keep("key", "object");
  const files::path path = all_files().front();
  const std::string whole = text_of(path);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    std::ofstream(path, std::ios::binary) << damaged;
    EXPECT_EQ(ObjectCache(folder()).find("key"), std::nullopt) << "byte " << i;
    EXPECT_FALSE(files::exists(path));
    std::ofstream(path, std::ios::binary) << whole.substr(0, i);
    EXPECT_EQ(ObjectCache(folder()).find("key"), std::nullopt) << "cut after " << i;
  }
  ObjectCache(folder()).keep("key", "object");
  EXPECT_EQ(ObjectCache(folder()).find("key"), "object");
}

TEST_F(ObjectFilesTest, AFileOfAnotherKeyUnderThisNameIsNotTaken) {
  ObjectCache(folder()).keep("key", "object");
  files::rename(all_files().front(), files::path(folder()) / digest("other"));
  EXPECT_EQ(ObjectCache(folder()).find("other"), std::nullopt);
}

TEST_F(ObjectFilesTest, AFolderThatCannotBeMadeIsSaidOnce) {
  std::ofstream(root_ / "cache") << "a file";
  testing::internal::CaptureStderr();
  ObjectCache objects(folder());
  for (int i = 0; i < 3; ++i) {
    objects.keep("key", "object");
    EXPECT_EQ(objects.find("key"), std::nullopt);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST_F(ObjectFilesTest, AFolderThatOthersCanWriteIsNotUsed) {
  files::create_directories(folder());
  chmod(folder().c_str(), 0777);
  testing::internal::CaptureStderr();
  ObjectCache objects(folder());
  objects.keep("key", "object");
  EXPECT_NE(testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(all_files().empty());
}

TEST_F(ObjectFilesTest, WhatIsNoFolderIsNotUsed) {
  const auto said_of = [](const std::string& folder) {
    testing::internal::CaptureStderr();
    ObjectCache(folder).keep("key", "object");
    return testing::internal::GetCapturedStderr();
  };
  std::ofstream(root_ / "file") << "text";
  EXPECT_NE(said_of(root_ / "file").find("it is no folder"), std::string::npos);
  files::create_directory(root_ / "other");
  files::create_directory_symlink(root_, root_ / "other" / "link");
  EXPECT_NE(said_of(root_ / "other" / "link").find("it is no folder"), std::string::npos);
}

TEST_F(ObjectFilesTest, AnotherUsersFolderIsNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give folders away";
  files::create_directories(folder());
  chmod(folder().c_str(), 0700);
  ASSERT_EQ(chown(folder().c_str(), 1234, 1234), 0);
  testing::internal::CaptureStderr();
  ObjectCache(folder()).keep("key", "object");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("it is another user's"), std::string::npos);
  EXPECT_TRUE(all_files().empty());
}

TEST_F(ObjectFilesTest, WhatStandsInTheWayOfOneKeyLeavesTheOthers) {
  testing::internal::CaptureStderr();
  ObjectCache objects(folder());
  objects.keep("other", "one");
  for (const char* key : {"empty", "full"})
    files::create_directory(files::path(folder()) / digest(key));
  std::ofstream(files::path(folder()) / digest("full") / "file") << "text";
  ASSERT_EQ(mkfifo((files::path(folder()) / digest("pipe")).c_str(), 0600), 0);
  for (const char* key : {"empty", "full"}) {
    EXPECT_EQ(objects.find(key), std::nullopt);
    objects.keep(key, "object");
    EXPECT_EQ(objects.find(key), std::nullopt);
  }
  EXPECT_EQ(objects.find("pipe"), std::nullopt);
  objects.keep("pipe", "object");
  EXPECT_EQ(objects.find("pipe"), "object");
  EXPECT_EQ(objects.find("other"), "one");
  objects.keep("third", "three");
  EXPECT_EQ(ObjectCache(folder()).find("third"), "three");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(ObjectFilesTest, AFullDiskIsSaidOnceAndLeavesNothing) {
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit;
  getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{.rlim_cur = 1000, .rlim_max = limit.rlim_max};
  testing::internal::CaptureStderr();
  ObjectCache objects(folder());
  objects.keep("small", "object");
  setrlimit(RLIMIT_FSIZE, &small);
  objects.keep("large", std::string(5000, 'x'));
  objects.keep("large", std::string(5000, 'x'));
  EXPECT_EQ(objects.find("small"), "object");
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, before);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_EQ(all_files().size(), 1U);
}

/// Whether `test` holds in a process whose user has no more rights than others.
template <class Test>
bool holds_for_a_common_user(const files::path& root, const Test& test) {
  constexpr uid_t kUser = 1234;
  if (geteuid() == 0) {
    EXPECT_EQ(chown(root.c_str(), kUser, kUser), 0);
    for (const auto& entry : files::recursive_directory_iterator(root))
      EXPECT_EQ(chown(entry.path().c_str(), kUser, kUser), 0);
  }
  const pid_t child = fork();
  if (child == 0) _exit((geteuid() != 0 || setuid(kUser) == 0) && test() ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  return status == 0;
}

TEST_F(ObjectFilesTest, AFolderThatCannotBeWrittenIsRead) {
  ObjectCache(folder()).keep("key", "object");
  chmod(folder().c_str(), 0500);
  EXPECT_TRUE(holds_for_a_common_user(root_, [&] {
    testing::internal::CaptureStderr();
    ObjectCache objects(folder());
    objects.keep("other", "object");
    const bool right = objects.find("key") == "object" && !objects.find("other");
    const std::string said = testing::internal::GetCapturedStderr();
    return right && std::count(said.begin(), said.end(), '\n') == 1;
  }));
  chmod(folder().c_str(), 0700);
}

TEST_F(ObjectFilesTest, FoldersBesideEachOtherAreSaidOnce) {
  std::ofstream(root_ / "cache") << "a file";
  testing::internal::CaptureStderr();
  for (const char* kind : {"kernels", "ways", "code"})
    ObjectCache(root_ / "cache" / kind).keep("key", "object");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST_F(ObjectFilesTest, SeveralProcessesMayWriteAtOnce) {
  const auto object_of = [](int i) { return std::string(static_cast<size_t>(1000 + i), 'x'); };
  std::vector<pid_t> children;
  for (int process = 0; process < 4; ++process) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    bool right = true;
    ObjectCache objects(folder());
    for (int i = 0; i < 200; ++i) {
      const std::string key = std::to_string(i % 20);
      if (const auto found = objects.find(key)) right = right && *found == object_of(i % 20);
      objects.keep(key, object_of(i % 20));
    }
    _exit(right ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(all_files().size(), 20U);
}

TEST_F(ObjectFilesTest, TheOldestGoWhenThereAreTooMany) {
  constexpr int64_t kMost = 100000;
  ObjectCache objects(folder(), kMost);
  for (int i = 0; i < 400; ++i) objects.keep(std::to_string(i), std::string(1000, 'x'));
  ObjectCache(folder(), kMost).keep("last", "x");  // looks at once
  int64_t total = 0;
  for (const files::path& path : all_files()) total += static_cast<int64_t>(files::file_size(path));
  EXPECT_LE(total, kMost);
  EXPECT_EQ(objects.find("0"), std::nullopt);
}

}  // namespace
}  // namespace janus::jit
