// Numbers of tests that the interpreter makes itself (whether a slice lies within its tensor, how
// many elements a mask selects, whether two sizes are equal). The profile has no fact of them.
// Their line and kind identify them, well enough to count attempts.
#pragma once

namespace janus::speculate {

/// The kinds of these tests, used in place of the number of a fact.
inline constexpr int kUncounted = -1, kIsAny = -2, kIsEqual = -3;

/// The number that identifies the test of a fact or kind at a line.
inline int test_number(int fact, int line) {
  constexpr int kMostLines = 10'000'000;
  return fact < 0 ? fact * kMostLines - line : fact;
}

}  // namespace janus::speculate
