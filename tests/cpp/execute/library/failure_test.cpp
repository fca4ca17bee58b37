// What failures tell of where and why.
#include "execute/library/failure.h"

#include <gtest/gtest.h>

#include <array>

#include "graph/text.h"
#include "ops/list.h"

namespace janus::execute {
namespace {

TEST(Failure, TellsDivisionByZeroFromWhatDoesNotFit) {
  const graph::Graph graph = graph::parse(R"(graph @f(%a: i64, %b: i64) {
  %c = scalar_floordiv %a, %b : i64
  return %c
}
)",
                                          ops::table());
  const graph::Node& node = *graph.body().nodes.front();
  const auto failure = [&](int64_t divisor) {
    std::array<Slot, 2> slots = {Slot::of(int64_t{1}), Slot::of(divisor)};
    const std::array<uint32_t, 2> inputs = {0, 1};
    return failure_of_number(node, {slots.data(), inputs, {}});
  };
  EXPECT_EQ(failure(0).kind, Failure::Kind::operation);
  EXPECT_EQ(failure(0).message, "scalar_floordiv: division by zero");
  EXPECT_EQ(failure(-1).kind, Failure::Kind::overflow);
}

TEST(Failure, NamesTheGuard) {
  const graph::Graph graph =
      graph::parse("graph @f(%ok: bool) {\n  guard %ok {id=4}\n  return\n}\n", ops::table());
  EXPECT_EQ(guard_failure(*graph.body().nodes.front()).guard, 4);
}

}  // namespace
}  // namespace janus::execute
