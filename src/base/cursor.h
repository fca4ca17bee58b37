// The tokenizer that the parsers of signatures and of graphs share: a position in a text. Blanks,
// newlines and comments separate tokens and mean nothing else. A comment is `//` between blanks, up
// to the end of the line; `H//2` is a floor division.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace janus {

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  /// The offset of the next token.
  size_t offset();
  void move_to(size_t offset) { offset_ = offset; }
  bool at_end() { return offset() == text_.size(); }

  /// The next character of the next token, or 0 at the end.
  char peek();
  /// Whether the rest starts with `token` (for words use `at_word`).
  bool at(std::string_view token);
  /// Steps over `token` if the rest starts with it.
  bool take(std::string_view token);
  /// Whether the next token is exactly this word (letters, digits, underscores).
  bool at_word(std::string_view word);
  bool take_word(std::string_view word);
  /// Steps over a word of letters, digits and underscores that does not start with a digit; empty
  /// if there is none. `dots`: points belong to it too, and it may start with a digit.
  std::string_view word(bool dots = false);
  /// Steps over a number as C++ and Python write it, with an optional sign; empty if there is none.
  std::string_view number();

  /// The next character, with nothing skipped: for string literals. 0 at the end.
  char raw() const { return offset_ < text_.size() ? text_[offset_] : '\0'; }
  size_t raw_offset() const { return offset_; }
  bool raw_end() const { return offset_ >= text_.size(); }
  void step() { ++offset_; }

  std::string_view text() const { return text_; }
  /// "line:column" of an offset, both counted from 1.
  std::string place(size_t offset) const;
  std::string place() { return place(offset()); }

 private:
  bool at_comment() const;

  std::string_view text_;
  size_t offset_ = 0;
};

}  // namespace janus
