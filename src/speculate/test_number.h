// Tests that the interpreter makes itself (whether a slice lies within its tensor, how many
// elements a mask chooses) have no fact of the profile: their line and which kind of test they are
// tell them apart, well enough to count what was tried.
#pragma once

namespace janus::speculate {

/// The kinds of such tests, in place of the number of a fact.
inline constexpr int kUncounted = -1, kIsAny = -2;

/// What tells the test of that fact or kind, at that line, apart from others.
inline int test_number(int fact, int line) {
  constexpr int kMostLines = 10'000'000;
  return fact < 0 ? fact * kMostLines - line : fact;
}

}  // namespace janus::speculate
