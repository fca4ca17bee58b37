// Buffers that live at the same time never overlap, and memory is used again.
#include "execute/memory/arena.h"

#include <gtest/gtest.h>

#include <random>

#include "execute/memory/shared_arena.h"

namespace janus::execute {
namespace {

bool overlap(const Buffer& a, const Buffer& b) {
  const bool in_time = a.first <= b.last && b.first <= a.last;
  return in_time && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

TEST(Arena, UsesMemoryAgain) {
  std::vector<Buffer> buffers{{100, 0, 1}, {100, 1, 2}, {100, 2, 3}};
  EXPECT_EQ(place_buffers(buffers), 256);
  EXPECT_EQ(buffers[0].offset, buffers[2].offset);
}

TEST(Arena, NeverOverlaps) {
  std::mt19937 engine(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<Buffer> buffers;
    for (int i = 0; i < 40; ++i) {
      const size_t first = engine() % 30;
      buffers.push_back({static_cast<int64_t>(engine() % 1000 + 1), first, first + engine() % 8});
    }
    const int64_t total = place_buffers(buffers);
    for (size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_EQ(buffers[i].offset % arena_alignment, 0);
      EXPECT_LE(buffers[i].offset + buffers[i].bytes, total);
      for (size_t j = 0; j < i; ++j) EXPECT_FALSE(overlap(buffers[i], buffers[j]));
    }
  }
}

TEST(SharedArena, IsUsedAgainWhenNobodyHoldsIt) {
  const auto first = SharedArena::hold_one(1000), second = SharedArena::hold_one(1000);
  EXPECT_NE(first->data(), second->data());
  EXPECT_FALSE(first->try_hold());
  first->let_go();
  const int64_t more = 1 << 20;
  EXPECT_EQ(SharedArena::hold_one(more), first);  // far more is reserved than asked for
}

TEST(SharedArena, GivesBackOnlyWhatNobodyHolds) {
  const auto held = SharedArena::hold_one(1), unused = SharedArena::hold_one(1);
  *held->data() = *unused->data() = 'x';
  unused->let_go();
  SharedArena::give_back_unused_pages();
  EXPECT_EQ(*held->data(), 'x');
  EXPECT_EQ(*unused->data(), '\0');
}

}  // namespace
}  // namespace janus::execute
