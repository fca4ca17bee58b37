// What comes of absent gradients alone is not computed, and the rest is as it was.
#include <gtest/gtest.h>

#include "../support.h"
#include "passes/gradient/absent_gradients.h"

namespace janus::passes {
namespace {

constexpr std::string_view kBackward = R"(
graph @backward(%saved: f64[3], %d_a: f64[3], %d_b: f64[3]) {
  %slope = reciprocal %saved : f64[3]
  %of_a = mul %d_a, %slope : f64[3]
  %of_b = neg %d_b : f64[3]
  %one = constant {value=1} : i64
  %d_x = add %of_a, %of_b, %one : f64[3]
  %d_y = mul %d_x, %of_a : f64[3]
  return %d_x, %d_y
})";

std::vector<std::string> operators(const graph::Graph& graph) {
  std::vector<std::string> names;
  for (const graph::Node* node : graph.body().nodes) names.emplace_back(node->op->name);
  return names;
}

TEST(AbsentGradients, AreNotMultiplied) {
  const graph::Graph made = without_absent_gradients(parsed(kBackward), {false, true});
  graph::verify(made);
  EXPECT_EQ(made.inputs().size(), 3U);
  const graph::Node* sum = made.results()[0]->definition;
  EXPECT_EQ(sum->op->name, "neg");
  EXPECT_EQ(made.results()[1]->definition->op->name, "mul");
}

TEST(AbsentGradients, GiveZerosWhereNothingComes) {
  const graph::Graph made = without_absent_gradients(parsed(kBackward), {false, false});
  graph::verify(made);
  const graph::DenseTensor zeros(graph::DType::f64, {3});
  for (const graph::Datum& gradient : Data(made).run(made).results)
    EXPECT_TRUE(graph::identical(gradient, zeros));
}

TEST(AbsentGradients, ChangeNothingWhereAllCome) {
  const graph::Graph backward = parsed(kBackward);
  const graph::Graph made = without_absent_gradients(backward, {true, true});
  EXPECT_EQ(operators(made), operators(backward));
}

}  // namespace
}  // namespace janus::passes
