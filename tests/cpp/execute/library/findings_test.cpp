// A second run finds what the first one noted.
#include "execute/library/findings.h"

#include <gtest/gtest.h>

#include <array>

#include "../fake_library.h"

namespace janus::execute {
namespace {

TEST(Findings, AreKnownByWhatIsReadOfWhichObject) {
  const fake::Library library;  // knows how to count references
  int one = 0, other = 0;
  std::array<Slot, 3> slots = {Slot::borrow_object(&one), Slot::of(int64_t{2}), Slot::of(3.5)};
  const std::array<uint32_t, 2> inputs = {0, 1};
  const std::array<uint32_t, 1> outputs = {2};
  const Operands operands{slots.data(), inputs, outputs};
  Findings findings;
  findings.note(7, operands);
  findings.close();
  slots[2].clear();
  ASSERT_TRUE(findings.find(7, operands));
  EXPECT_EQ(slots[2].f64(), 3.5);
  EXPECT_FALSE(findings.find(8, operands));
  slots[0] = Slot::borrow_object(&other);
  EXPECT_FALSE(findings.find(7, operands));
  slots[0] = Slot::borrow_object(&one);
  slots[1] = Slot::of(int64_t{3});
  EXPECT_FALSE(findings.find(7, operands));
}

}  // namespace
}  // namespace janus::execute
