// What leaves a run.
#include "execute/run/boundary.h"

#include <gtest/gtest.h>

#include <array>

#include "../fake_library.h"
#include "execute/values/container.h"

namespace janus::execute {
namespace {

TEST(Boundary, TensorsOfListsAreSetApart) {
  fake::Library library;
  const Slot one = fake::tensor(library, {2}, {1, 2});
  const Slot other = fake::tensor(library, {2}, {3, 4});
  std::array<Slot, 2> results = {one, make_list({one, other, other})};
  set_apart(library, results);
  const std::vector<Slot> items = list_items(results[1]);
  ASSERT_EQ(items.size(), 3U);
  EXPECT_NE(library.storage(items[0]), library.storage(one));
  EXPECT_EQ(items[1].tensor(), other.tensor());
  EXPECT_NE(library.storage(items[2]), library.storage(other));
  EXPECT_EQ(fake::elements(library, items[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ(fake::elements(library, items[2]), (std::vector<float>{3, 4}));
}

}  // namespace
}  // namespace janus::execute
