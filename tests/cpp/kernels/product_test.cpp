// Products of our own code beside sums in double precision, over sizes around those of tiles,
// panels and blocks, operands that are rows, columns or parts of larger matrices, and all ways to
// begin.
#include "kernels/product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace janus::kernels {
namespace {

/// A matrix somewhere in a larger one, by rows or by columns.
struct Matrix {
  std::vector<float> memory;
  Factor at;

  Matrix(int64_t rows, int64_t columns, bool by_columns, int64_t beside, std::mt19937& random) {
    const int64_t step = (by_columns ? rows : columns) + beside;
    memory.resize(static_cast<size_t>(step * (by_columns ? columns : rows)));
    std::uniform_real_distribution<float> numbers(-1, 1);
    for (float& each : memory) each = numbers(random);
    at = {memory.data(), by_columns ? 1 : step, by_columns ? step : 1};
  }
  double element(int64_t i, int64_t j) const { return at.data[i * at.down + j * at.across]; }
};

enum class Begin { zeros, row, out };

void check(int64_t rows, int64_t columns, int64_t inner, bool left_by_columns,
           bool right_by_columns, Begin begin, std::mt19937& random) {
  const int64_t beside = static_cast<int64_t>(random() % 3);
  const Matrix left(rows, inner, left_by_columns, beside, random);
  const Matrix right(inner, columns, right_by_columns, beside, random);
  const Matrix bias(1, columns, false, 0, random);
  Matrix out(rows, columns, false, beside, random);
  const Matrix before = out;
  Product product{rows, columns, inner, left.at, right.at, out.memory.data(), out.at.down};
  if (begin == Begin::row) product.start = bias.at.data;
  if (begin == Begin::out) {
    product.start = product.out;
    product.start_down = product.out_down;
  }
  multiply(product);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0, size = 1;
      if (begin == Begin::row) sum = bias.element(0, j);
      if (begin == Begin::out) sum = before.memory[static_cast<size_t>(i * out.at.down + j)];
      for (int64_t k = 0; k < inner; ++k) {
        const double one = left.element(i, k) * right.element(k, j);
        sum += one;
        size += std::abs(one);
      }
      ASSERT_NEAR(out.memory[static_cast<size_t>(i * out.at.down + j)], sum, 1e-6 * size)
          << rows << 'x' << inner << 'x' << columns << " at " << i << ',' << j;
    }
  }
  // What lies beside the result is untouched.
  for (size_t i = 0; i < out.memory.size(); ++i) {
    const bool is_beside = static_cast<int64_t>(i) % out.at.down >= columns;
    ASSERT_TRUE(!is_beside || out.memory[i] == before.memory[i]) << i;
  }
}

TEST(Product, equals_sums_of_products) {
  if (!has_products()) GTEST_SKIP() << "no wide vectors";
  std::mt19937 random(1);
  const int64_t some[] = {1, 2, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 50, 64, 70};
  const int64_t inner[] = {1, 2, 15, 16, 17, 100, 511, 512, 513, 1100};
  for (int round = 0; round < 400; ++round) {
    const int64_t rows = some[random() % std::size(some)];
    const int64_t columns = some[random() % std::size(some)];
    check(rows, columns, inner[random() % std::size(inner)], random() % 2 == 0, random() % 2 == 0,
          static_cast<Begin>(random() % 3), random);
  }
}

TEST(Product, of_many_panels_on_several_threads) {
  if (!has_products()) GTEST_SKIP() << "no wide vectors";
  std::mt19937 random(2);
  check(130, 700, 260, false, true, Begin::row, random);
  check(700, 300, 40, true, false, Begin::zeros, random);
}

TEST(Product, keeps_what_is_no_number) {
  if (!has_products()) GTEST_SKIP() << "no wide vectors";
  const float infinity = INFINITY;
  std::vector<float> left{infinity, 1, 0, 2}, right{0, 1, 3, 4}, out(4);
  multiply({2, 2, 2, {left.data(), 2, 1}, {right.data(), 2, 1}, out.data(), 2});
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], infinity);
  EXPECT_EQ(out[2], 6);
  EXPECT_EQ(out[3], 8);
}

}  // namespace
}  // namespace janus::kernels
