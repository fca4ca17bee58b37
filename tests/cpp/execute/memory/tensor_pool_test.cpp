// Tensors are used again once nobody else has them.
#include "execute/memory/tensor_pool.h"

#include <gtest/gtest.h>

#include "../fake_library.h"

namespace janus::execute {
namespace {

class TensorPoolTest : public testing::Test {
 protected:
  Slot take() { return pool.take(layout, library); }

  fake::Library library;
  const Layout layout = contiguous_layout(graph::DType::f32, {2, 3});
  TensorPool pool;
};

TEST_F(TensorPoolTest, GivesWhatIsFree) {
  Slot first = take();
  const void* const handle = first.tensor();
  EXPECT_NE(take().tensor(), handle);
  first.clear();
  const Slot again = take(), other = take();
  EXPECT_NE(again.tensor(), other.tensor());
  EXPECT_EQ(pool.size(), 2U);
  EXPECT_EQ(library.allocations, 2);
}

TEST_F(TensorPoolTest, ForgetsWhatLeavesTheRun) {
  const Slot leaves = take();
  take();
  pool.forget(leaves);
  EXPECT_EQ(pool.size(), 1U);
  EXPECT_TRUE(library.has_no_other_owner(leaves));
}

TEST_F(TensorPoolTest, ForgetsWhatOthersHave) {
  const Slot held = take();
  take();
  pool.forget_shared(library);
  EXPECT_EQ(pool.size(), 1U);
  take();
  EXPECT_EQ(library.allocations, 2);
}

}  // namespace
}  // namespace janus::execute
