#include "speculate/call_history.h"

#include <gtest/gtest.h>

namespace janus::speculate {
namespace {

TEST(CallHistory, KeepsTheFirstCallsAndEverFewerOfTheLaterOnes) {
  CallHistory<uint64_t> history;
  for (uint64_t calls = 0; calls < 100'000; ++calls)
    if (history.wants(calls)) history.note(calls, static_cast<double>(calls), calls);
  const auto& samples = history.samples();
  ASSERT_GE(samples.size(), 64U);
  ASSERT_LT(samples.size(), 128U);
  for (uint64_t i = 0; i < 32; ++i) EXPECT_EQ(samples[i].counts, i);
  constexpr uint64_t kStride = 2048;
  for (size_t i = 33; i < samples.size(); ++i) {
    const uint64_t distance = samples[i].counts - samples[i - 1].counts;
    EXPECT_TRUE(kStride <= distance && distance <= 2 * kStride) << i << ": " << distance;
  }
  EXPECT_GT(samples.back().counts + 2 * kStride, 99'999U);
}

}  // namespace
}  // namespace janus::speculate
