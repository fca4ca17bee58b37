// Choices on disk: found by the next process under the same key, whole or not at all.
#include "jit/tuning_cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "temporary_folder.h"

namespace janus::jit {
namespace {

namespace files = std::filesystem;

class KeptChoicesTest : public TestWithFolder {
 protected:
  std::string folder() const { return root_ / "ways"; }
};

TEST_F(KeptChoicesTest, AreFoundUnderTheirKeyAndCase) {
  TuningCache(folder(), "this machine").keep("product:8,16", 2);
  TuningCache(folder(), "this machine").keep("product:8,32", 1);
  TuningCache again(folder(), "this machine");
  EXPECT_EQ(again.find("product:8,16"), 2);
  EXPECT_EQ(again.find("product:8,32"), 1);
  EXPECT_EQ(again.find("product:8"), std::nullopt);
  EXPECT_EQ(TuningCache(folder(), "another").find("product:8,16"), std::nullopt);
}

TEST_F(KeptChoicesTest, WhatIsDamagedIsNotThere) {
  TuningCache(folder(), "key").keep("case", 1);
  const files::path path = files::directory_iterator(folder())->path();
  files::resize_file(path, files::file_size(path) - 1);
  EXPECT_EQ(TuningCache(folder(), "key").find("case"), std::nullopt);
  TuningCache(folder(), "key").keep("case", 2);
  EXPECT_EQ(TuningCache(folder(), "key").find("case"), 2);
}

TEST_F(KeptChoicesTest, WithoutAFolderTheProcessRemembers) {
  TuningCache choices("", "key");
  choices.keep("case", 1);
  EXPECT_EQ(choices.find("case"), 1);
}

TEST_F(KeptChoicesTest, ThoseOfOthersStay) {
  TuningCache one(folder(), "key"), other(folder(), "key");
  EXPECT_EQ(one.find("a"), std::nullopt);
  other.keep("b", 2);
  one.keep("a", 1);
  one.keep("b", 1);  // it came to another result: it goes on by that
  TuningCache next(folder(), "key");
  EXPECT_EQ(next.find("a"), 1);
  EXPECT_EQ(next.find("b"), 1);
}

TEST_F(KeptChoicesTest, AreBounded) {
  TuningCache choices(folder(), "key", 10);
  for (int i = 0; i < 25; ++i) choices.keep(std::to_string(i), 1);
  int known = 0;
  for (int i = 0; i < 25; ++i) known += choices.find(std::to_string(i)).has_value();
  EXPECT_LE(known, 10);
  EXPECT_EQ(choices.find("24"), 1);
}

TEST_F(KeptChoicesTest, SeveralProcessesMayKeepAtOnce) {
  std::vector<pid_t> children;
  for (int process = 0; process < 4; ++process) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    TuningCache choices(folder(), "key");
    for (int i = 0; i < 50; ++i) choices.keep(std::to_string(i), i % 3);
    _exit(0);
  }
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  TuningCache choices(folder(), "key");
  for (int i = 0; i < 50; ++i) EXPECT_EQ(choices.find(std::to_string(i)), i % 3);
}

}  // namespace
}  // namespace janus::jit
