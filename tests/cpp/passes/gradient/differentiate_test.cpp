// Gradients against finite differences, and the cases that differentiation has to tell apart.
#include <gtest/gtest.h>

#include "../support.h"
#include "base/check.h"
#include "passes/gradient/differentiate.h"
#include "passes/lowering/decompose.h"

namespace janus::passes {
namespace {

using graph::Datum;
using graph::DenseTensor;

double sum_of(const Datum& datum) { return std::get<DenseTensor>(datum).at(0); }

/// Changes one element of input `input` by `step` and gives the first result.
double loss_after_step(const graph::Graph& graph, Data data, size_t input, size_t element,
                       double step) {
  std::get<DenseTensor>(data.inputs[input]).elements[element].real += step;
  return sum_of(data.run(graph).results.at(0));
}

/// The graph's first result is a loss; the others are its gradients with respect to the inputs.
void expect_gradients_match_differences(std::string_view text, double tolerance = 1e-6) {
  const graph::Graph original = parsed(text);
  const graph::Graph graph = decompose(differentiate(decompose(original)));
  graph::verify(graph);
  const Data data(graph);
  const graph::Outcome outcome = data.run(graph);
  ASSERT_TRUE(outcome.ok());
  constexpr double kStep = 1e-6;
  for (size_t input = 0; input + 1 < outcome.results.size(); ++input) {
    const auto& gradient = std::get<DenseTensor>(outcome.results[input + 1]);
    for (size_t element = 0; element < gradient.elements.size(); ++element) {
      const double up = loss_after_step(graph, data, input, element, kStep);
      const double down = loss_after_step(graph, data, input, element, -kStep);
      EXPECT_NEAR(gradient.at(element), (up - down) / (2 * kStep), tolerance)
          << "input " << input << ", element " << element << " of\n"
          << graph::print(graph);
    }
  }
}

TEST(Differentiate, ProductOfTwoInputs) {
  expect_gradients_match_differences(R"(
graph @f(%x: f64[2,3], %y: f64[2,3]) {
  %none = constant {value=none} : none
  %z = mul %x, %y : f64[2,3]
  %l = sum %z : f64[]
  %dx, %dy = gradient %l, %none, %x, %y {outputs=1, targets=2} : f64[2,3], f64[2,3]
  return %l, %dx, %dy
})");
}

TEST(Differentiate, BroadcastOperandsGetSums) {
  expect_gradients_match_differences(R"(
graph @f(%x: f64[2,3], %y: f64[3], %s: f64[]) {
  %none = constant {value=none} : none
  %a = mul %x, %y : f64[2,3]
  %b = div %a, %s : f64[2,3]
  %c = tanh %b : f64[2,3]
  %l = sum %c : f64[]
  %dx, %dy, %ds = gradient %l, %none, %x, %y, %s {outputs=1, targets=3} : f64[2,3], f64[3], f64[]
  return %l, %dx, %dy, %ds
})");
}

TEST(Differentiate, NamedDimensions) {
  expect_gradients_match_differences(R"(
graph @f(%x: f64[B,3], %y: f64[3]) {
  %none = constant {value=none} : none
  %a = mul %x, %y : f64[B,3]
  %b = sigmoid %a : f64[B,3]
  %l = sum %b : f64[]
  %dx, %dy = gradient %l, %none, %x, %y {outputs=1, targets=2} : f64[B,3], f64[3]
  return %l, %dx, %dy
})");
}

TEST(Differentiate, AValueUsedSeveralTimesGetsTheSum) {
  expect_gradients_match_differences(R"(
graph @f(%x: f64[4]) {
  %none = constant {value=none} : none
  %a = exp %x : f64[4]
  %b = mul %a, %x : f64[4]
  %c = mul %a, %b : f64[4]
  %d = mul %c, %x : f64[4]
  %l = sum %d : f64[]
  %dx = gradient %l, %none, %x {outputs=1, targets=1} : f64[4]
  return %l, %dx
})");
}

TEST(Differentiate, ProductsOfMatrices) {
  expect_gradients_match_differences(R"(
graph @f(%x: f64[2,3], %w: f64[4,3], %b: f64[4]) {
  %none = constant {value=none} : none
  %z = linear %x, %w, %b : f64[2,4]
  %h = relu %z : f64[2,4]
  %p = log_softmax %h {dim=1} : f64[2,4]
  %q = mul %p, %p : f64[2,4]
  %l = sum %q : f64[]
  %dx, %dw, %db = gradient %l, %none, %x, %w, %b {outputs=1, targets=3} : f64[2,3], f64[4,3], f64[4]
  return %l, %dx, %dw, %db
})",
                                     1e-5);
}

/// Evaluates a graph without symbols on fixed data.
std::vector<Datum> results_of(std::string_view text) {
  const graph::Graph graph = decompose(differentiate(decompose(parsed(text))));
  graph::verify(graph);
  return Data(graph).run(graph).results;
}

TEST(Differentiate, AnIntermediateTargetGetsItsWholeGradient) {
  const auto results = results_of(R"(
graph @f(%x: f64[3]) {
  %alpha = constant {value=1} : i64
  %none = constant {value=none} : none
  %h = exp %x : f64[3]
  %a = mul %h, %h : f64[3]
  %b = add %a, %h, %alpha : f64[3]
  %l = sum %b : f64[]
  %dh, %dx = gradient %l, %none, %h, %x {outputs=1, targets=2} : f64[3], f64[3]
  %two = constant {value=2.0} : f64
  %one = constant {value=1.0} : f64
  %2h = mul %h, %two : f64[3]
  %expected_h = add %2h, %one, %alpha : f64[3]
  %expected_x = mul %expected_h, %h : f64[3]
  return %dh, %expected_h, %dx, %expected_x
})");
  EXPECT_TRUE(graph::close(results[0], results[1], 1e-12)) << results[0];
  EXPECT_TRUE(graph::close(results[2], results[3], 1e-12)) << results[2];
}

TEST(Differentiate, ATargetThatIsAnOutputGetsItsSeed) {
  const auto results = results_of(R"(
graph @f(%x: f64[3], %seed: f64[3]) {
  %dx = gradient %x, %seed, %x {outputs=1, targets=1} : f64[3]
  return %dx, %seed
})");
  EXPECT_TRUE(graph::identical(results[0], results[1]));
}

TEST(Differentiate, SeveralOutputsAddUp) {
  const auto results = results_of(R"(
graph @f(%x: f64[3], %s: f64[3], %t: f64[3]) {
  %alpha = constant {value=1} : i64
  %a = neg %x : f64[3]
  %dx = gradient %a, %x, %s, %t, %x {outputs=2, targets=1} : f64[3]
  %expected = sub %t, %s, %alpha : f64[3]
  return %dx, %expected
})");
  EXPECT_TRUE(graph::close(results[0], results[1], 1e-15)) << results[0];
}

TEST(Differentiate, WhatNoOutputDependsOnGetsZeros) {
  const auto results = results_of(R"(
graph @f(%x: f64[2], %y: f64[2]) {
  %none = constant {value=none} : none
  %l = sum %x : f64[]
  %dy = gradient %l, %none, %y {outputs=1, targets=1} : f64[2]
  return %dy
})");
  EXPECT_TRUE(graph::identical(results[0], DenseTensor::of(graph::DType::f64, {2}, {0, 0})));
}

TEST(Differentiate, DetachStopsGradients) {
  const auto results = results_of(R"(
graph @f(%x: f64[2]) {
  %none = constant {value=none} : none
  %d = detach %x : f64[2]
  %y = mul %d, %x : f64[2]
  %l = sum %y : f64[]
  %dx = gradient %l, %none, %x {outputs=1, targets=1} : f64[2]
  return %dx, %x
})");
  EXPECT_TRUE(graph::identical(results[0], results[1]));
}

TEST(Differentiate, AGradientIsDifferentiatedIfItWasCreatedForThat) {
  const auto results = results_of(R"(
graph @f(%x: f64[2]) {
  %none = constant {value=none} : none
  %y = mul %x, %x : f64[2]
  %z = mul %y, %x : f64[2]
  %l = sum %z : f64[]
  %dx = gradient %l, %none, %x {create_graph=true, outputs=1, targets=1} : f64[2]
  %m = sum %dx : f64[]
  %ddx = gradient %m, %none, %x {create_graph=true, outputs=1, targets=1} : f64[2]
  %n = sum %ddx : f64[]
  %dddx = gradient %n, %none, %x {outputs=1, targets=1} : f64[2]
  %six = constant {value=6.0} : f64
  %expected = mul %x, %six : f64[2]
  return %ddx, %expected, %dddx
})");
  EXPECT_TRUE(graph::close(results[0], results[1], 1e-12)) << results[0];
  EXPECT_TRUE(graph::close(results[2], DenseTensor::of(graph::DType::f64, {2}, {6, 6}), 1e-12));
}

TEST(Differentiate, OtherwiseAGradientIsAConstantForLaterOnes) {
  const auto results = results_of(R"(
graph @f(%x: f64[2]) {
  %none = constant {value=none} : none
  %y = mul %x, %x : f64[2]
  %l = sum %y : f64[]
  %dx = gradient %l, %none, %x {outputs=1, targets=1} : f64[2]
  %p = mul %dx, %x : f64[2]
  %m = sum %p : f64[]
  %ddx = gradient %m, %none, %x {outputs=1, targets=1} : f64[2]
  return %ddx, %dx
})");
  EXPECT_TRUE(graph::identical(results[0], results[1]));
}

TEST(Differentiate, ConversionsConvertTheGradientBack) {
  const auto results = results_of(R"(
graph @f(%x: f32[2]) {
  %none = constant {value=none} : none
  %d = to %x {dtype=f64} : f64[2]
  %y = mul %d, %d : f64[2]
  %l = sum %y : f64[]
  %dx = gradient %l, %none, %x {outputs=1, targets=1} : f32[2]
  %two = constant {value=2.0} : f64
  %expected = mul %x, %two : f32[2]
  return %dx, %expected
})");
  EXPECT_TRUE(graph::close(results[0], results[1], 1e-6)) << results[0];
}

TEST(Differentiate, ALossOfSeveralElementsNeedsASeed) {
  const graph::Graph graph = parsed(R"(
graph @f(%x: f64[2]) {
  %none = constant {value=none} : none
  %y = mul %x, %x : f64[2]
  %dx = gradient %y, %none, %x {outputs=1, targets=1} : f64[2]
  return %dx
})");
  EXPECT_THROW(differentiate(graph), graph::TypeError);
}

}  // namespace
}  // namespace janus::passes
