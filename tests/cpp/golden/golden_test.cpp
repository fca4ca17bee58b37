// Every golden file under tests/ir, and the golden runner itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "golden.h"

namespace janus::golden {
namespace {

namespace fs = std::filesystem;

const fs::path& folder() {
  static const fs::path path = fs::path(TORCHJANUS_SOURCE_DIR) / "tests" / "ir";
  return path;
}

std::vector<std::string> golden_files() {
  std::vector<std::string> files;
  if (fs::exists(folder())) {
    for (const auto& entry : fs::recursive_directory_iterator(folder()))
      if (entry.path().extension() == ".ir")
        files.push_back(fs::relative(entry.path(), folder()).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class GoldenFile : public testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenFile);

TEST_P(GoldenFile, is_as_expected) {
  std::ifstream file(folder() / GetParam());
  std::ostringstream text;
  text << file.rdbuf();
  for (const std::string& failure : run_file(text.str()).failures) ADD_FAILURE() << failure;
}

INSTANTIATE_TEST_SUITE_P(Ir, GoldenFile, testing::ValuesIn(golden_files()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param.substr(0, info.param.size() - 3);
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
                               '_');
                           return name;
                         });

const std::string identity =
    "graph @f(%x: f32[2]) {\n"
    "  %y = detach %x : f32[2]\n"
    "  return %y\n"
    "}\n";

TEST(GoldenRunner, takes_an_output_that_is_right) {
  const std::string text = identity + "----\n" + identity;
  const Result result = run_case(text);
  EXPECT_EQ(result.failure, "");
  EXPECT_EQ(result.updated, text);
}

TEST(GoldenRunner, writes_the_output_that_came) {
  const Result result = run_case("// RUN:\n" + identity);
  EXPECT_NE(result.failure, "");
  EXPECT_EQ(result.updated, "// RUN:\n" + identity + "----\n" + identity);
}

TEST(GoldenRunner, compares_errors_by_their_first_line) {
  const std::string wrong =
      "// ERROR: 2:18: expected a value's name, got 'y'\ngraph @f(%x: f32[2], y) {}\n";
  EXPECT_NE(run_case(wrong).failure, "");
  const std::string updated = run_case(wrong).updated;
  EXPECT_EQ(run_case(updated).failure, "") << updated;
  EXPECT_NE(run_case("// ERROR: 1:1: nonsense\n" + identity).failure, "");
}

TEST(GoldenRunner, compares_two_inputs) {
  EXPECT_EQ(run_case("// SAME\n" + identity + "----\n// the same\n" + identity).failure, "");
  std::string other = identity;
  other.replace(other.find("@f"), 2, "@g");
  EXPECT_NE(run_case("// SAME\n" + identity + "----\n" + other).failure, "");
}

TEST(GoldenRunner, names_passes_that_are_not_there) {
  EXPECT_EQ(run_case("// RUN: no_such_pass\n" + identity).failure,
            "there is no pass named no_such_pass");
}

TEST(GoldenRunner, keeps_the_cases_of_a_file_apart) {
  const std::string one = identity + "----\n" + identity;
  const FileResult result = run_file(one + "====\n" + one);
  EXPECT_TRUE(result.failures.empty());
  EXPECT_EQ(result.updated, one + "====\n" + one);
}

}  // namespace
}  // namespace janus::golden
