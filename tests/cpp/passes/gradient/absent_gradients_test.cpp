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

/// Negative zeros, of which the reciprocal is infinite, and gradients: zeros where none comes.
std::vector<graph::Datum> operands_where(const std::vector<bool>& given) {
  std::vector<graph::Datum> operands;
  for (const double number : {-0.0, given[0] ? -0.0 : 0.0, given[1] ? -0.0 : 0.0}) {
    graph::DenseTensor tensor(graph::DType::f64, {3});
    for (graph::Number& element : tensor.elements)
      element = graph::Number::of(number, graph::DType::f64);
    operands.emplace_back(std::move(tensor));
  }
  return operands;
}

TEST(AbsentGradients, MayBeSaidByTheRun) {
  const graph::Graph told = with_absence_at_run_time(parsed(kBackward), 2);
  graph::verify(told);
  ASSERT_EQ(told.inputs().size(), 5U);
  Data at_run_time(told), before(parsed(kBackward));
  for (const std::vector<bool>& given : {std::vector{false, false}, std::vector{false, true},
                                         std::vector{true, false}, std::vector{true, true}}) {
    before.inputs = at_run_time.inputs = operands_where(given);
    for (const bool comes : given) {
      graph::DenseTensor flag(graph::DType::b1, {});
      flag.elements[0] = graph::Number::of(int64_t{comes}, graph::DType::b1);
      at_run_time.inputs.emplace_back(std::move(flag));
    }
    const auto expected = before.run(without_absent_gradients(parsed(kBackward), given)).results;
    const auto actual = at_run_time.run(told).results;
    EXPECT_TRUE(graph::identical(expected[0], actual[0])) << given[0] << given[1];
    EXPECT_TRUE(graph::identical(expected[1], actual[1])) << given[0] << given[1];
  }
}

}  // namespace
}  // namespace janus::passes
