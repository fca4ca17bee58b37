// The parts of a backward run, one after the other, give what the whole gives; each takes and gives
// no more than it has to.
#include "passes/gradient/divide_backward.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "../random_program.h"
#include "../support.h"
#include "passes/gradient/split_gradient.h"

namespace janus::passes {
namespace {

using graph::Datum;
using Leaves = std::vector<std::optional<size_t>>;

/// What runs of the parts give for all targets.
std::vector<Datum> run_parts(const std::vector<BackwardPart>& parts,
                             const std::vector<Datum>& inputs, size_t targets) {
  std::map<size_t, Datum> values;
  for (size_t i = 0; i < inputs.size(); ++i) values.emplace(i, inputs[i]);
  std::vector<Datum> gradients(targets);
  for (const BackwardPart& part : parts) {
    graph::verify(part.graph);
    std::vector<Datum> taken;
    for (const size_t value : part.takes) taken.push_back(values.at(value));
    const auto results = graph::interpret(part.graph, taken, {}, ops::reference()).results;
    EXPECT_EQ(results.size(), part.targets.size() + part.gives.size());
    for (size_t i = 0; i < part.targets.size(); ++i) gradients[part.targets[i]] = results[i];
    for (size_t i = 0; i < part.gives.size(); ++i)
      values.emplace(part.gives[i], results[part.targets.size() + i]);
  }
  return gradients;
}

void expect_same(const graph::Graph& whole, const std::vector<BackwardPart>& parts,
                 const std::vector<Datum>& inputs) {
  const auto expected = graph::interpret(whole, inputs, {}, ops::reference()).results;
  const auto found = run_parts(parts, inputs, expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(graph::identical(found[i], expected[i])) << i;
}

void expect_same(const graph::Graph& whole, const std::vector<BackwardPart>& parts) {
  expect_same(whole, parts, Data(whole).inputs);
}

/// Names of the nodes' results.
std::vector<std::string> computed(const BackwardPart& part) {
  std::vector<std::string> names;
  for (const graph::Node* node : part.graph.body().nodes) names.push_back(node->output()->name);
  return names;
}

using Names = std::vector<std::string>;

constexpr std::string_view kTwoLayers = R"(
graph @backward(%x: f64[2,3], %w: f64[3,3], %h: f64[2,3], %v: f64[3,3], %d: f64[2,3]) {
  %ht = transpose %h {dim0=0, dim1=1} : f64[3,2]
  %dv = mm %ht, %d : f64[3,3]
  %vt = transpose %v {dim0=0, dim1=1} : f64[3,3]
  %dh = mm %d, %vt : f64[2,3]
  %hh = mul %h, %h : f64[2,3]
  %da = mul %dh, %hh : f64[2,3]
  %xt = transpose %x {dim0=0, dim1=1} : f64[3,2]
  %dw = mm %xt, %da : f64[3,3]
  return %dv, %dw
})";

TEST(DivideBackward, ANodeBelongsToTheFirstPartThatNeedsIt) {
  const graph::Graph whole = parsed(kTwoLayers);
  const auto parts = divide_backward(whole, {{0}, {1}}, Leaves(5));
  ASSERT_EQ(parts.size(), 2U);
  expect_same(whole, parts);
  EXPECT_EQ(computed(parts[0]), (Names{"ht", "dv"}));
  EXPECT_EQ(computed(parts[1]), (Names{"vt", "dh", "hh", "da", "xt", "dw"}));
  EXPECT_EQ(parts[0].takes, (std::vector<size_t>{2, 4}));
  EXPECT_TRUE(parts[0].gives.empty());
}

TEST(DivideBackward, ALeafIsReadBeforeItsGradientIsGiven) {
  const graph::Graph whole = parsed(kTwoLayers);
  const auto parts =
      divide_backward(whole, {{0}, {1}}, {std::nullopt, 1, std::nullopt, 0, std::nullopt});
  ASSERT_EQ(parts.size(), 2U);
  expect_same(whole, parts);
  EXPECT_EQ(computed(parts[0]), (Names{"ht", "dv", "vt", "dh"}));
  EXPECT_EQ(parts[0].gives.size(), 1U);
  EXPECT_TRUE(std::ranges::find(parts[1].takes, size_t{3}) == parts[1].takes.end());
}

TEST(DivideBackward, ViewsAreMadeAgain) {
  const graph::Graph whole = parsed(R"(
graph @backward(%x: f64[2,3], %d: f64[2,3]) {
  %e = exp %d : f64[2,3]
  %et = transpose %e {dim0=0, dim1=1} : f64[3,2]
  %da = mm %et, %x : f64[3,3]
  %s = mul %da, %da : f64[3,3]
  %db = mm %s, %et : f64[3,2]
  return %da, %db
})");
  const auto parts = divide_backward(whole, {{0}, {1}}, Leaves(2));
  ASSERT_EQ(parts.size(), 2U);
  expect_same(whole, parts);
  EXPECT_EQ(computed(parts[1]), (Names{"et", "s", "db"}));
  EXPECT_EQ(parts[0].gives.size(), 2U);  // e, da
}

TEST(DivideBackward, WhatIsThereAlreadyMakesNoPart) {
  const graph::Graph whole = parsed(kTwoLayers);
  EXPECT_TRUE(divide_backward(whole, {{1}, {}}, Leaves(5)).empty());
  EXPECT_TRUE(divide_backward(whole, {{0, 1}}, Leaves(5)).empty());
  const graph::Graph loop = parsed(R"(
graph @backward(%c: bool, %d: f64[3]) {
  %da, %db = if %c : f64[3], f64[3] {
    %e = exp %d : f64[3]
    yield %e, %d
  } else {
    yield %d, %d
  }
  return %da, %db
})");
  EXPECT_TRUE(divide_backward(loop, {{0}, {1}}, Leaves(2)).empty());
}

TEST(DivideBackward, DimensionsComeWithWhatIsTaken) {
  const graph::Graph whole = parsed(R"(
graph @backward(%x: f64[B,3], %d: f64[3]) {
  %da = mul %d, %d : f64[3]
  %u = unsqueeze %d {dim=0} : f64[1,3]
  %db = expand %u {size=[B,3]} : f64[B,3]
  return %da, %db
})");
  const auto parts = divide_backward(whole, {{0}, {1}}, Leaves(2));
  // A view alone is no work for a part of its own.
  EXPECT_TRUE(parts.empty());
  const graph::Graph other = parsed(R"(
graph @backward(%x: f64[B,3], %d: f64[3]) {
  %da = mul %d, %d : f64[3]
  %u = unsqueeze %d {dim=0} : f64[1,3]
  %e = expand %u {size=[B,3]} : f64[B,3]
  %db = exp %e : f64[B,3]
  return %da, %db
})");
  const auto two = divide_backward(other, {{0}, {1}}, Leaves(2));
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[1].takes, (std::vector<size_t>{1, 0}));
  expect_same(other, two);
}

TEST(DivideBackward, ValuesOfTheRunThatAreDimensionsKeepItWhole) {
  const graph::Graph whole = parsed(R"(
graph @backward(%n: i64, %d: f64[3]) {
  %k = dimension %n {symbol="K"} : i64
  %da = mul %d, %d : f64[3]
  %db = exp %d : f64[3]
  return %da, %db
})");
  EXPECT_TRUE(divide_backward(whole, {{0}, {1}}, Leaves(2)).empty());
}

TEST(DivideBackward, OfRandomPrograms) {
  size_t divided = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const SplitGradient split = split_gradient(RandomProgram(seed).build(), {0}, {0, 1, 2}, {});
    const std::vector<Bucket> buckets = {{seed % 3}, {(seed + 1) % 3, (seed + 2) % 3}};
    Leaves leaves(split.backward.inputs().size());
    for (size_t i = seed % 4; i < leaves.size(); i += 4) leaves[i] = i % 3;
    const auto parts = divide_backward(split.backward, buckets, leaves);
    if (parts.empty()) continue;
    ++divided;
    const auto results = Data(split.forward).run(split.forward).results;
    std::vector<Datum> inputs(results.begin() + 1, results.end());
    inputs.push_back(graph::DenseTensor::of(graph::DType::f64, {}, {0.5}));
    expect_same(split.backward, parts, inputs);
  }
  EXPECT_GT(divided, 10U);
}

TEST(BucketsOf, EndWhereTheirBytesReachTheLimit) {
  const BucketLimits limits = {.first = 10, .rest = 25, .most = 8};
  const auto divided = [&](const std::vector<int64_t>& bytes) {
    std::vector<size_t> order(bytes.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    return buckets_of(order, bytes, limits);
  };
  EXPECT_EQ(divided({6, 6, 20, 4, 4, 20, 30}), (std::vector<Bucket>{{0, 1}, {2, 3, 4}, {5, 6}}));
  // What is left is too little for a part.
  EXPECT_EQ(divided({6, 6, 9}), (std::vector<Bucket>{{0, 1, 2}}));
  EXPECT_EQ(divided({}), std::vector<Bucket>(1));
}

TEST(BucketsOf, AreLargerWhereThereWouldBeTooMany) {
  const BucketLimits limits = {.first = 1, .rest = 1, .most = 3};
  const std::vector<size_t> order = {4, 3, 2, 1, 0};
  EXPECT_EQ(buckets_of(order, std::vector<int64_t>(5, 10), limits),
            (std::vector<Bucket>{{4}, {3, 2, 1}, {0}}));
}

TEST(BucketsOf, EndWhereTheBucketsThatAreSentDo) {
  const BucketLimits limits = {.first = 10, .rest = 1000, .most = 8};
  const auto divided = [&](const std::vector<int64_t>& bytes, const BucketNumbers& numbers) {
    std::vector<size_t> order(bytes.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    return buckets_of(order, bytes, limits, numbers);
  };
  // What nobody sends (2) comes with the next bucket. What is left may be small.
  EXPECT_EQ(divided({6, 6, 9, 20, 4}, {0, 0, std::nullopt, 1, 2}),
            (std::vector<Bucket>{{0, 1}, {2, 3}, {4}}));
  // The second one is complete before the first: both are sent behind the first.
  EXPECT_EQ(divided({20, 20, 20, 20}, {1, 0, 0, 2}), (std::vector<Bucket>{{0, 1, 2}, {3}}));
  // Small buckets come with the next one.
  EXPECT_EQ(divided({6, 6, 6, 6}, {0, 1, 2, 3}), (std::vector<Bucket>{{0, 1}, {2, 3}}));
}

TEST(BucketsOf, ThatAreSentComeTogetherWhereThereWouldBeTooMany) {
  const BucketLimits limits = {.first = 1, .rest = 1, .most = 3};
  const std::vector<size_t> order = {4, 3, 2, 1, 0};
  EXPECT_EQ(buckets_of(order, std::vector<int64_t>(5, 10), limits, {4, 3, 2, 1, 0}),
            (std::vector<Bucket>{{4}, {3, 2, 1}, {0}}));
}

}  // namespace
}  // namespace janus::passes
