// Lists and frames are never changed, and may hold rows that are not computed yet.
#include "execute/values/container.h"

#include <gtest/gtest.h>

namespace janus::execute {
namespace {

std::vector<int64_t> numbers(const Slot& list) {
  std::vector<int64_t> numbers;
  for (const Slot& item : list_items(list)) numbers.push_back(item.i64());
  return numbers;
}

Slot list_to(int64_t count) {
  std::vector<Slot> items;
  for (int64_t i = 0; i < count; ++i) items.push_back(Slot::of(i));
  return make_list(std::move(items));
}

TEST(Container, ListsShareWhatTheyHaveInCommon) {
  const Slot three = list_to(3);
  const Slot four = push(three, Slot::of(int64_t{7}));
  EXPECT_EQ(numbers(three), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(numbers(four), (std::vector<int64_t>{0, 1, 2, 7}));
  EXPECT_EQ(without_last(four).container(), three.container());
  EXPECT_EQ(last_item(four).i64(), 7);
  EXPECT_EQ(list_size(empty_list()), 0);
  EXPECT_TRUE(list_items(empty_list()).empty());
}

TEST(Container, LongListsAndDeepFramesEndWithoutRecursion) {
  Slot deep = list_to(300'000);
  for (int i = 0; i < 300'000; ++i) {
    std::vector<Slot> items;
    items.push_back(std::move(deep));
    deep = make_frame(std::move(items));
  }
  EXPECT_EQ(frame_items(deep).size(), 1U);
}

TEST(Container, RowsAreFoundAndReplacedWhereverTheyAre) {
  const Slot row = make_row(5);
  EXPECT_TRUE(is_row(row));
  EXPECT_EQ(row_number(row), 5);
  const Slot list = push(push(empty_list(), row), make_frame({row, Slot::of(true)}));
  const std::vector<Slot> slots = {list, row, Slot::of(1.5)};
  int seen = 0;
  see_rows(slots, [&](const Slot& each) {
    EXPECT_EQ(row_number(each), 5);
    ++seen;
  });
  EXPECT_EQ(seen, 3);
  replace_items(list, [](Slot& item) {
    if (is_row(item)) item = Slot::of(int64_t{8});
  });
  EXPECT_EQ(list_items(list).front().i64(), 8);
  EXPECT_EQ(frame_items(last_item(list)).front().i64(), 8);
}

}  // namespace
}  // namespace janus::execute
