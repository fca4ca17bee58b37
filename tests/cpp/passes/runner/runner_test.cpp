#include "passes/runner/runner.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "../support.h"
#include "base/check.h"
#include "base/options.h"
#include "passes/cleanup/dead_code.h"
#include "passes/cleanup/simplify.h"

namespace janus::passes {
namespace {

constexpr std::string_view kGraph = R"(
graph @f(%x: f32[2]) {
  %a = exp %x : f32[2]
  %b = neg %x : f32[2]
  return %b
})";

/// Restores the process's switches.
class PassRunnerTest : public testing::Test {
 protected:
  PassRunnerTest() : before_(options()) {}
  ~PassRunnerTest() override { options() = before_; }

 private:
  Options before_;
};

graph::Graph break_types(graph::Graph graph) {
  graph::Graph result = remove_dead_code(std::move(graph));
  result.body().nodes.front()->outputs.front()->type = graph::Type::i64();
  return result;
}

TEST_F(PassRunnerTest, TimesEachPass) {
  std::vector<PassTime> times;
  PassRunner run(&times);
  const graph::Graph result = run("remove_dead", remove_dead_code, parsed(kGraph));
  EXPECT_EQ(result.body().nodes.size(), 1U);
  ASSERT_EQ(times.size(), 1U);
  EXPECT_EQ(times[0].name, "remove_dead");
}

TEST_F(PassRunnerTest, LeavesOutWhatIsDisabledUnlessItIsRequired) {
  options().disabled.insert("remove_dead");
  PassRunner run;
  EXPECT_EQ(run("remove_dead", remove_dead_code, parsed(kGraph)).body().nodes.size(), 2U);
  EXPECT_EQ(run("remove_dead", remove_dead_code, parsed(kGraph), PassRunner::Need::required)
                .body()
                .nodes.size(),
            1U);
}

TEST_F(PassRunnerTest, StopsAfterTheGivenNumberOfPasses) {
  options().stop_after = 1;
  PassRunner run;
  graph::Graph graph = run("simplify", simplify, parsed(kGraph));
  EXPECT_EQ(run("remove_dead", remove_dead_code, std::move(graph)).body().nodes.size(), 2U);
}

TEST_F(PassRunnerTest, NamesThePassThatBreaksAGraph) {
  options().log_levels = {{"verify", 1}};
  PassRunner run;
  try {
    run("break_types", break_types, parsed(kGraph));
    FAIL() << "the verifier found nothing";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("pass break_types"), std::string::npos);
  }
}

TEST_F(PassRunnerTest, DumpsWhatChanged) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "passes_dump";
  std::filesystem::remove_all(folder);
  options().dump_folder = folder.string();
  PassRunner run;
  graph::Graph graph = run("remove_dead", remove_dead_code, parsed(kGraph));
  run("remove_dead", remove_dead_code, std::move(graph));
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    EXPECT_NE(entry.path().string().find("remove_dead.ir"), std::string::npos);
    ++files;
  }
  EXPECT_EQ(files, 1U);
}

}  // namespace
}  // namespace janus::passes
