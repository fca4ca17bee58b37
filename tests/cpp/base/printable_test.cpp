#include "base/printable.h"

#include <gtest/gtest.h>

namespace janus {
namespace {

TEST(Printable, SurrogatesAreEscaped) {
  EXPECT_EQ(printable("/tmp/b\xED\xB3\xBF.py:3"), "/tmp/b\\udcff.py:3");
  EXPECT_EQ(printable("\xED\xA0\x80\xED\xBF\xBF"), "\\ud800\\udfff");
}

TEST(Printable, OtherTextsStay) {
  for (const char* text :
       {"", "a.py", "\xC3\xA4.py", "\xED\x9F\xBF", "\xF0\x9F\x98\x80", "\xED", "a\xED\xB3"})
    EXPECT_EQ(printable(text), text);
}

}  // namespace
}  // namespace janus
