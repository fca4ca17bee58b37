// Forward and backward apart give what the gradient in one graph gives, and save no more than they
// need.
#include <gtest/gtest.h>

#include <algorithm>

#include "../random_program.h"
#include "../support.h"
#include "passes/gradient/differentiate.h"
#include "passes/gradient/split_gradient.h"
#include "passes/structure/copied.h"

namespace janus::passes {
namespace {

using graph::Datum;

/// Runs forward, then backward with the saved values and the given seeds.
std::vector<Datum> run_split(const SplitGradient& split, const Data& data, size_t original_results,
                             std::vector<Datum> seeds) {
  const graph::Outcome forward = data.run(split.forward);
  EXPECT_EQ(forward.results.size(), original_results + split.saved_count);
  std::vector<Datum> inputs(forward.results.begin() + static_cast<std::ptrdiff_t>(original_results),
                            forward.results.end());
  inputs.insert(inputs.end(), seeds.begin(), seeds.end());
  return graph::interpret(split.backward, inputs, {}, ops::reference()).results;
}

/// The gradients of the last of the original results are those that `joint` computes, which takes
/// the seed behind the inputs.
void expect_same(const SplitGradient& split, size_t original_results, std::string_view joint) {
  graph::verify(split.forward);
  graph::verify(split.backward);
  Data data(split.forward);
  const Datum seed = data.datum(split.forward.results()[original_results - 1]->type);
  const auto gradients = run_split(split, data, original_results, {seed});
  data.inputs.push_back(seed);
  const auto expected = data.run(differentiate(parsed(joint))).results;
  ASSERT_EQ(gradients.size(), 2U);
  EXPECT_TRUE(graph::identical(gradients[0], expected[0]));
  EXPECT_TRUE(graph::identical(gradients[1], expected[1]));
}

constexpr std::string_view kModel = R"(
graph @model(%x: f64[2,3], %y: f64[2,3]) {
  %w = state {cell="w"} : f64[3]
  %a = mul %x, %w : f64[2,3]
  %h = tanh %a : f64[2,3]
  %z = mul %h, %y : f64[2,3]
  return %z
})";

TEST(SplitGradient, AgreesWithTheGradientInOneGraph) {
  const SplitGradient split = split_gradient(parsed(kModel), {0}, {1}, {"w"});
  expect_same(split, 1, R"(
graph @joint(%x: f64[2,3], %y: f64[2,3], %seed: f64[2,3]) {
  %w = state {cell="w"} : f64[3]
  %a = mul %x, %w : f64[2,3]
  %h = tanh %a : f64[2,3]
  %z = mul %h, %y : f64[2,3]
  %dy, %dw = gradient %z, %seed, %y, %w {outputs=1, targets=2} : f64[2,3], f64[3]
  return %dy, %dw
})");
}

TEST(SplitGradient, EndsAtResultsThatAreCut) {
  const SplitGradient split = split_gradient(parsed(R"(
graph @model(%x: f64[2,3], %y: f64[2,3]) {
  %w = state {cell="w"} : f64[3]
  %a = mul %x, %w : f64[2,3]
  %h = tanh %a : f64[2,3]
  %d = detach %h : f64[2,3]
  %b = mul %d, %y : f64[2,3]
  %z = mul %h, %b : f64[2,3]
  return %h, %z
})"),
                                             {1}, {1}, {}, {0});
  expect_same(split, 2, R"(
graph @joint(%x: f64[2,3], %y: f64[2,3], %seed: f64[2,3]) {
  %w = state {cell="w"} : f64[3]
  %a = mul %x, %w : f64[2,3]
  %h = tanh %a : f64[2,3]
  %dz = mul %seed, %h : f64[2,3]
  %dy = mul %dz, %h : f64[2,3]
  %b = mul %h, %y : f64[2,3]
  %dh = mul %seed, %b : f64[2,3]
  return %dy, %dh
})");
}

TEST(SplitGradient, SavesWhatGradientRulesUse) {
  const SplitGradient split = split_gradient(parsed(kModel), {0}, {1}, {"w"});
  std::vector<std::string> saved;
  for (size_t i = 0; i < split.saved_count; ++i)
    saved.push_back(split.forward.results()[1 + i]->name);
  std::ranges::sort(saved);
  EXPECT_EQ(saved, (std::vector<std::string>{"h", "x", "y"}));
}

TEST(SplitGradient, PassesDimensionsThatBackwardCannotSee) {
  const SplitGradient split = split_gradient(parsed(R"(
graph @total(%x: f64[B,3]) {
  %l = sum %x : f64[]
  return %l
})"),
                                             {0}, {0}, {});
  graph::verify(split.backward);
  ASSERT_EQ(split.saved_count, 1U);
  EXPECT_EQ(split.backward.inputs()[0]->name, "B");
  EXPECT_EQ(split.backward.inputs()[0]->type, graph::Type::i64());
  const Data data(split.forward);
  const auto gradients =
      run_split(split, data, 1, {graph::DenseTensor::of(graph::DType::f64, {}, {2})});
  EXPECT_TRUE(graph::identical(
      gradients[0], graph::DenseTensor::of(graph::DType::f64, {3, 3}, std::vector<double>(9, 2))));
}

TEST(SplitGradient, OfABackwardGraphGivesTheSecondDerivative) {
  const SplitGradient first = split_gradient(parsed(R"(
graph @cube(%x: f64[2]) {
  %y = mul %x, %x : f64[2]
  %z = mul %y, %x : f64[2]
  return %z
})"),
                                             {0}, {0}, {});
  const size_t inputs = first.backward.inputs().size();
  std::vector<size_t> all(inputs);
  for (size_t i = 0; i < inputs; ++i) all[i] = i;
  const SplitGradient second = split_gradient(first.backward, {0}, all, {});
  graph::verify(second.forward);
  graph::verify(second.backward);
  EXPECT_EQ(second.backward.results().size(), inputs);
}

TEST(SplitGradient, OfAnInputThatDoesNotMatterIsZeros) {
  const SplitGradient split = split_gradient(parsed(R"(
graph @f(%x: f64[2], %y: f64[2]) {
  %z = exp %x : f64[2]
  return %z
})"),
                                             {0}, {1}, {});
  const Data data(split.forward);
  const auto gradients = run_split(split, data, 1, {data.inputs[0]});
  EXPECT_TRUE(
      graph::identical(gradients[0], graph::DenseTensor::of(graph::DType::f64, {2}, {0, 0})));
}

void expect_split_programs_to_agree(bool with_functions) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const graph::Graph function = RandomProgram(seed, with_functions).build();
    const SplitGradient split = split_gradient(function, {0}, {0, 1, 2}, {});
    graph::verify(split.forward);
    graph::verify(split.backward);
    Data data(function, seed);
    data.inputs.back() = static_cast<int64_t>(seed % 4);
    const Datum one = graph::DenseTensor::of(graph::DType::f64, {}, {1});
    const auto gradients = run_split(split, data, 1, {one});

    graph::Graph joint = copied(function);
    graph::Builder builder(joint);
    std::vector<graph::Value*> operands = {joint.results().front(), builder.none()};
    operands.insert(operands.end(), joint.inputs().begin(), joint.inputs().begin() + 3);
    joint.body().results =
        builder.append(op::gradient, operands, {{"outputs", int64_t{1}}, {"targets", int64_t{3}}})
            ->outputs;
    const auto expected = data.run(differentiate(joint)).results;
    ASSERT_EQ(gradients.size(), 3U);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_TRUE(graph::close(gradients[i], expected[i], 1e-14)) << graph::print(split.backward);
  }
}

TEST(SplitGradient, FramesCrossTheBorder) { expect_split_programs_to_agree(false); }

TEST(SplitGradient, TheBackwardRunHasFunctionsOfItsOwn) { expect_split_programs_to_agree(true); }

}  // namespace
}  // namespace janus::passes
