// Strides of element-wise results, as eager's iterator chooses them.
#include "execute/values/layout.h"

#include <gtest/gtest.h>

namespace janus::execute {
namespace {

using Sizes = std::vector<int64_t>;

Layout with_strides(Sizes sizes, Sizes strides) {
  return {graph::DType::f32, std::move(sizes), std::move(strides)};
}

Sizes result(Sizes sizes, std::vector<Layout> operands) {
  std::vector<const Layout*> pointers;
  for (const Layout& operand : operands) pointers.push_back(&operand);
  return elementwise_strides(sizes, pointers);
}

TEST(Layout, KnowsContiguousAndDense) {
  EXPECT_TRUE(with_strides({2, 3}, {3, 1}).is_contiguous());
  EXPECT_TRUE(with_strides({2, 1, 3}, {3, 99, 1}).is_contiguous());
  EXPECT_FALSE(with_strides({2, 3}, {1, 2}).is_contiguous());
  EXPECT_TRUE(with_strides({2, 3}, {1, 2}).is_dense());
  EXPECT_FALSE(with_strides({2, 3}, {0, 1}).is_dense());
  EXPECT_EQ(with_strides({2, 3}, {5, 1}).span_bytes(), 32);
}

TEST(Layout, ElementwiseResultsKeepTheOrderOfDimensions) {
  EXPECT_EQ(result({2, 3}, {with_strides({2, 3}, {3, 1})}), (Sizes{3, 1}));
  EXPECT_EQ(result({2, 3}, {with_strides({2, 3}, {1, 2})}), (Sizes{1, 2}));
  EXPECT_EQ(result({2, 3}, {with_strides({2, 3}, {1, 2}), with_strides({3}, {1})}), (Sizes{1, 2}));
  EXPECT_EQ(result({2, 3}, {with_strides({3}, {1}), with_strides({2, 1}, {1, 1})}), (Sizes{3, 1}));
  EXPECT_EQ(result({4, 2, 3}, {with_strides({4, 2, 3}, {6, 1, 2})}), (Sizes{6, 1, 2}));
  EXPECT_EQ(result({2, 3}, {with_strides({2, 3}, {0, 1})}), (Sizes{3, 1}));
}

TEST(Layout, BroadcastStridesAreZeroWhereBroadcast) {
  EXPECT_EQ(broadcast_strides(with_strides({3}, {1}), Sizes{2, 3}), (Sizes{0, 1}));
  EXPECT_EQ(broadcast_strides(with_strides({2, 1}, {1, 1}), Sizes{2, 3}), (Sizes{1, 0}));
}

}  // namespace
}  // namespace janus::execute
