// Operators on Python numbers, and elements of tensors as numbers.
#include "execute/values/numbers.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "graph/text.h"
#include "ops/list.h"

namespace janus::execute {
namespace {

constexpr std::array<uint32_t, 2> inputs = {0, 1};
constexpr std::array<uint32_t, 1> outputs = {2};

class NumbersTest : public testing::Test {
 protected:
  bool run(const graph::OpDef& op, Slot a, Slot b) {
    slots = {std::move(a), std::move(b), Slot()};
    return run_number(op.number, {slots.data(), inputs, outputs});
  }
  std::array<Slot, 3> slots;
};

TEST_F(NumbersTest, KindsAreThoseOfPython) {
  ASSERT_TRUE(run(op::scalar_add, Slot::of(int64_t{2}), Slot::of(true)));
  EXPECT_EQ(slots[2].i64(), 3);
  ASSERT_TRUE(run(op::scalar_add, Slot::of(int64_t{2}), Slot::of(0.5)));
  EXPECT_EQ(slots[2].f64(), 2.5);
}

TEST_F(NumbersTest, WhatDoesNotFitHasNoResult) {
  EXPECT_FALSE(
      run(op::scalar_add, Slot::of(std::numeric_limits<int64_t>::max()), Slot::of(int64_t{1})));
  EXPECT_FALSE(run(op::scalar_floordiv, Slot::of(int64_t{1}), Slot::of(int64_t{0})));
}

TEST(ReadItem, KnowsHalfPrecision) {
  const auto item = [](const char* dtype, uint16_t bits) {
    const graph::Graph graph = graph::parse(
        std::string("graph @f(%x: ") + dtype + "[]) {\n  %n = item %x : f64\n  return %n\n}\n",
        ops::table());
    return read_item(*graph.body().nodes.front(), &bits).f64();
  };
  EXPECT_EQ(item("f16", 0x3e00), 1.5);
  EXPECT_EQ(item("f16", 0x8001), -0x1p-24);
  EXPECT_EQ(item("f16", 0xfc00), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(item("bf16", 0x3fc0), 1.5);
}

}  // namespace
}  // namespace janus::execute
