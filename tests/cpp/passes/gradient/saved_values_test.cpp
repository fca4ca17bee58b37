#include "passes/gradient/saved_values.h"

#include <gtest/gtest.h>

#include "../support.h"

namespace janus::passes {
namespace {

TEST(SavedValues, AreThoseThatTheGradientRuleUses) {
  const graph::Graph graph = parsed(R"(
graph @f(%x: f32[2], %y: f32[2]) {
  %alpha = constant {value=1} : i64
  %a = mul %x, %y : f32[2]
  %b = tanh %a : f32[2]
  %c = add %a, %b, %alpha : f32[2]
  return %c
})");
  const auto saved = [&](std::string_view name) {
    return saved_values(*value_named(graph, name)->definition);
  };
  EXPECT_EQ(saved("a").inputs, (std::vector<bool>{true, true}));
  EXPECT_EQ(saved("a").outputs, (std::vector<bool>{false}));
  EXPECT_EQ(saved("b").inputs, (std::vector<bool>{false}));
  EXPECT_EQ(saved("b").outputs, (std::vector<bool>{true}));
  EXPECT_EQ(saved("c").inputs.at(0), false);
  EXPECT_EQ(saved("c").inputs.at(1), false);
}

}  // namespace
}  // namespace janus::passes
