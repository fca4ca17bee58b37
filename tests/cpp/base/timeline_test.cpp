#include "base/timeline.h"

#include <gtest/gtest.h>

#include <thread>

namespace janus {
namespace {

TEST(Timeline, KeepsNothingUnlessAsked) {
  {
    const TimelineSpan span("test", "unheard");
  }
  EXPECT_FALSE(Timeline::is_kept());
  EXPECT_TRUE(Timeline::end().empty());
}

TEST(Timeline, SpansEndBeforeThoseAroundThem) {
  Timeline::begin(10);
  {
    TimelineSpan outer("test", "outer");
    outer.details = "told";
    const TimelineSpan inner("test", "inner");
  }
  const auto events = Timeline::end();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].name, "inner");
  EXPECT_EQ(events[1].name, "outer");
  EXPECT_EQ(events[1].details, "told");
  EXPECT_LE(events[1].start, events[0].start);
  EXPECT_LE(events[0].end, events[1].end);
}

TEST(Timeline, ThreadsAreToldApart) {
  Timeline::begin(10);
  Timeline::add("test", "here", 1, 2);
  std::thread([] { Timeline::add("test", "there", 1, 2); }).join();
  const auto events = Timeline::end();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_NE(events[0].thread, events[1].thread);
}

TEST(Timeline, FurtherEventsAreOnlyCounted) {
  Timeline::begin(2);
  for (int i = 0; i < 5; ++i) Timeline::add("test", "one", i, i);
  EXPECT_EQ(Timeline::left_out(), 3U);
  EXPECT_EQ(Timeline::end().size(), 2U);
  Timeline::begin(2);
  EXPECT_EQ(Timeline::left_out(), 0U);
  EXPECT_TRUE(Timeline::end().empty());
}

}  // namespace
}  // namespace janus
