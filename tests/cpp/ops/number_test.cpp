// Arithmetic of Python numbers.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "ops/list.h"
#include "ops/number.h"

namespace janus {
namespace {

using ops::Number;
using Result = std::optional<Number>;

constexpr int64_t largest = std::numeric_limits<int64_t>::max();
constexpr int64_t least = std::numeric_limits<int64_t>::min();
constexpr double infinity = std::numeric_limits<double>::infinity();

Number of(int value) { return int64_t{value}; }
Number of(int64_t value) { return value; }
Number of(double value) { return value; }
Number of(bool value) { return value; }

template <class... Operands>
Result compute(const graph::OpDef& op, Operands... operands) {
  const std::array<Number, sizeof...(operands)> numbers = {of(operands)...};
  return op.number(numbers);
}

TEST(Numbers, DivisionRoundsDown) {
  EXPECT_EQ(compute(op::scalar_floordiv, -7, 2), of(-4));
  EXPECT_EQ(compute(op::scalar_mod, -7, 2), of(1));
  EXPECT_EQ(compute(op::scalar_mod, 7, -2), of(-1));
  EXPECT_EQ(compute(op::scalar_floordiv, 7.5, -2), of(-4.0));
  EXPECT_EQ(compute(op::scalar_mod, -1.0, infinity), of(infinity));
  EXPECT_EQ(compute(op::scalar_truediv, 7, 2), of(3.5));
  EXPECT_TRUE(std::signbit(std::get<double>(*compute(op::scalar_mod, 4.0, -2.0))));
  for (const auto* op : {&op::scalar_truediv, &op::scalar_floordiv, &op::scalar_mod}) {
    EXPECT_EQ(compute(*op, 1, 0), std::nullopt);
    EXPECT_EQ(compute(*op, 1.0, 0.0), std::nullopt);
  }
}

TEST(Numbers, IntegersThatDoNotFitFail) {
  EXPECT_EQ(compute(op::scalar_add, largest, 1), std::nullopt);
  EXPECT_EQ(compute(op::scalar_sub, least, 1), std::nullopt);
  EXPECT_EQ(compute(op::scalar_mul, largest, 2), std::nullopt);
  EXPECT_EQ(compute(op::scalar_neg, least), std::nullopt);
  EXPECT_EQ(compute(op::scalar_floordiv, least, -1), std::nullopt);
  EXPECT_EQ(compute(op::scalar_mod, least, -1), of(0));
  EXPECT_EQ(compute(op::scalar_pow, 2, 62), of(int64_t{1} << 62));
  EXPECT_EQ(compute(op::scalar_pow, 2, 63), std::nullopt);
  EXPECT_EQ(compute(op::scalar_lshift, 1, 63), std::nullopt);
}

TEST(Numbers, PowersAreRealOrFail) {
  EXPECT_EQ(compute(op::scalar_pow, 2, -1), of(0.5));
  EXPECT_EQ(compute(op::scalar_pow, -8.0, 1.0 / 3), std::nullopt);
  EXPECT_EQ(compute(op::scalar_pow, 0.0, -1.0), std::nullopt);
  EXPECT_EQ(compute(op::scalar_pow, 1e300, 2.0), std::nullopt);
  EXPECT_EQ(compute(op::scalar_pow, infinity, 2.0), of(infinity));
}

TEST(Numbers, BoolsAreIntegersButKeepTheirBits) {
  EXPECT_EQ(compute(op::scalar_add, true, true), of(2));
  EXPECT_EQ(compute(op::scalar_and, true, false), of(false));
  EXPECT_EQ(compute(op::scalar_and, true, 3), of(1));
  EXPECT_EQ(compute(op::scalar_invert, true), of(-2));
  EXPECT_EQ(compute(op::scalar_not, 0.0), of(true));
}

TEST(Numbers, ComparisonsAreExact) {
  EXPECT_EQ(compute(op::scalar_lt, 1, 1.5), of(true));
  EXPECT_EQ(compute(op::scalar_eq, std::nan(""), std::nan("")), of(false));
  EXPECT_EQ(compute(op::scalar_eq, largest, 9223372036854775808.0), std::nullopt);
  EXPECT_EQ(compute(op::scalar_max, 1.0, std::nan("")), of(1.0));
}

TEST(Numbers, FunctionsFailWherePythonRaises) {
  EXPECT_EQ(compute(op::scalar_sqrt, 9), of(3.0));
  EXPECT_EQ(compute(op::scalar_sqrt, -1.0), std::nullopt);
  EXPECT_EQ(compute(op::scalar_log, 0), std::nullopt);
  EXPECT_EQ(compute(op::scalar_exp, 1000.0), std::nullopt);
  EXPECT_EQ(compute(op::scalar_sin, infinity), std::nullopt);
  EXPECT_EQ(compute(op::scalar_int, std::nan("")), std::nullopt);
  EXPECT_EQ(compute(op::scalar_int, -2.7), of(-2));
  EXPECT_EQ(compute(op::scalar_round, 2.5), of(2));
  EXPECT_EQ(compute(op::scalar_floor, -0.5), of(-1));
}

}  // namespace
}  // namespace janus
