#include "base/options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/check.h"

namespace janus {
namespace {

class OptionsTest : public testing::Test {
 protected:
  void SetUp() override { saved_ = options(); }
  void TearDown() override { options() = saved_; }
  Options saved_;
};

TEST_F(OptionsTest, a_channel_is_on_up_to_its_level) {
  options().log_levels = {{"pass", 2}};
  EXPECT_TRUE(log_enabled("pass"));
  EXPECT_TRUE(log_enabled("pass", 2));
  EXPECT_FALSE(log_enabled("pass", 3));
  EXPECT_FALSE(log_enabled("guard"));
}

TEST_F(OptionsTest, dumps_are_numbered_files) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "janus_dump";
  std::filesystem::remove_all(folder);
  options().dump_folder = folder.string();
  dump("fold.ir", "first");
  dump("fuse.ir", "second");
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    std::ostringstream text;
    text << file.rdbuf();
    texts.push_back(entry.path().filename().string().substr(3) + "=" + text.str());
  }
  std::sort(texts.begin(), texts.end());
  EXPECT_EQ(texts, (std::vector<std::string>{"fold.ir=first", "fuse.ir=second"}));
}

TEST(Check, throws_with_message_condition_and_place) {
  const int found = 3;
  try {
    TORCHJANUS_CHECK(found == 2, "matmul: expected 2 operands, got ", found);
    FAIL();
  } catch (const InternalError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("matmul: expected 2 operands, got 3"), std::string::npos);
    EXPECT_NE(message.find("found == 2"), std::string::npos);
    EXPECT_NE(message.find("options_test.cpp"), std::string::npos);
  }
}

}  // namespace
}  // namespace janus
