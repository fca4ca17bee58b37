#include "base/cursor.h"

#include <algorithm>

#include "base/check.h"

namespace janus {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

bool Cursor::at_comment() const {
  if (text_.substr(offset_, 2) != "//") return false;
  const bool starts = offset_ == 0 || is_blank(text_[offset_ - 1]);
  return starts && (offset_ + 2 == text_.size() || is_blank(text_[offset_ + 2]));
}

size_t Cursor::offset() {
  while (offset_ < text_.size()) {
    if (is_blank(text_[offset_])) {
      ++offset_;
    } else if (at_comment()) {
      const size_t end = text_.find('\n', offset_);
      offset_ = end == std::string_view::npos ? text_.size() : end;
    } else {
      break;
    }
  }
  return offset_;
}

char Cursor::peek() {
  offset();
  return raw();
}

bool Cursor::at(std::string_view token) { return text_.substr(offset(), token.size()) == token; }

bool Cursor::take(std::string_view token) {
  if (!at(token)) return false;
  offset_ += token.size();
  return true;
}

bool Cursor::at_word(std::string_view expected) {
  const size_t start = offset();
  const bool same = word() == expected;
  offset_ = start;
  return same;
}

bool Cursor::take_word(std::string_view expected) {
  if (!at_word(expected)) return false;
  offset_ += expected.size();
  return true;
}

std::string_view Cursor::word(bool dots) {
  const size_t start = offset();
  if (is_digit(raw()) && !dots) return {};
  while (!raw_end() && (is_letter(raw()) || is_digit(raw()) || (dots && raw() == '.'))) step();
  return text_.substr(start, offset_ - start);
}

std::string_view Cursor::number() {
  const size_t start = offset();
  if (raw() == '-' || raw() == '+') step();
  const size_t digits = offset_;
  while (is_digit(raw()) || raw() == '.') step();
  if (offset_ == digits) {
    offset_ = start;
    return {};
  }
  if (raw() == 'e' || raw() == 'E') {
    const size_t exponent = offset_;
    step();
    if (raw() == '-' || raw() == '+') step();
    if (!is_digit(raw())) offset_ = exponent;
    while (is_digit(raw())) step();
  }
  return text_.substr(start, offset_ - start);
}

std::string Cursor::place(size_t offset) const {
  const std::string_view before = text_.substr(0, std::min(offset, text_.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t last = before.rfind('\n');
  const size_t column = before.size() - (last == std::string_view::npos ? 0 : last + 1) + 1;
  return cat(line, ":", column);
}

}  // namespace janus
