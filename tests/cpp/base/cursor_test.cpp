#include "base/cursor.h"

#include <gtest/gtest.h>

namespace janus {
namespace {

TEST(Cursor, skips_blanks_and_comments_between_tokens) {
  Cursor cursor("  one // a comment\n\t// another\n two//three");
  EXPECT_TRUE(cursor.take_word("one"));
  EXPECT_EQ(cursor.word(), "two");
  EXPECT_TRUE(cursor.take("//")) << "a floor division, not a comment";
  EXPECT_EQ(cursor.word(), "three");
  EXPECT_TRUE(cursor.at_end());
}

TEST(Cursor, takes_whole_words_only) {
  Cursor cursor("graphs");
  EXPECT_FALSE(cursor.take_word("graph"));
  EXPECT_TRUE(cursor.at("graph"));
  EXPECT_TRUE(cursor.take_word("graphs"));
}

TEST(Cursor, reads_numbers) {
  for (const char* text : {"1", "-2", "0.5", "1e-05", "-3.25E+7"}) {
    Cursor cursor(text);
    EXPECT_EQ(cursor.number(), text);
    EXPECT_TRUE(cursor.at_end());
  }
  Cursor word("e5");
  EXPECT_EQ(word.number(), "");
  Cursor power("2e");
  EXPECT_EQ(power.number(), "2");
}

TEST(Cursor, knows_line_and_column) {
  Cursor cursor("a\n  b");
  cursor.word();
  EXPECT_EQ(cursor.place(), "2:3");
  EXPECT_EQ(cursor.place(0), "1:1");
  EXPECT_EQ(cursor.place(1000), "2:4");
}

}  // namespace
}  // namespace janus
