// For tests of what is kept on disk.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace janus::jit {

/// Each test has a folder of its own, which is gone behind it.
class TestWithFolder : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/torchjanus_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::filesystem::path root_;
};

}  // namespace janus::jit
