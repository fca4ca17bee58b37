#include "graph/text_elements.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/policy.h"
#include "graph/text.h"

namespace janus::graph {
namespace {

int64_t parse_integer(Cursor& cursor, std::string_view text, size_t start) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    cursor.move_to(start);
    fail_parse(cursor, "an integer of 64 bits");
  }
  return value;
}

/// Dimension expressions with Python's precedences. Overflow and division by zero are errors.
class DimParser {
 public:
  explicit DimParser(Cursor& cursor) : cursor_(cursor) {}

  Dim sum() {
    Dim result = product();
    while (true) {
      if (cursor_.take("+"))
        result = result + product();
      else if (cursor_.take("-"))
        result = result - product();
      else
        return result;
    }
  }

 private:
  Dim product() {
    Dim result = factor();
    while (true) {
      if (cursor_.take("*"))
        result = result * factor();
      else if (cursor_.take("//"))
        result = floor_divide(result, factor());
      else if (cursor_.take("%"))
        result = remainder(result, factor());
      else
        return result;
    }
  }

  Dim factor() {
    if (++depth_ > policy::kDeepestConstant) fail_parse(cursor_, "less nesting");
    Dim result = primary();
    --depth_;
    return result;
  }

  Dim primary() {
    const char next = cursor_.peek();
    if (next == '-') return negative();
    if (next >= '0' && next <= '9') return integer();
    if (cursor_.take("$")) return symbol(true);
    if (cursor_.take("(")) {
      Dim result = sum();
      expect(cursor_, ")");
      return result;
    }
    const bool smallest = cursor_.at("min(");
    if (smallest || cursor_.at("max(")) return extremum(smallest);
    return symbol(false);
  }

  Dim negative() {
    const size_t start = cursor_.offset();
    cursor_.step();
    if (cursor_.raw() >= '0' && cursor_.raw() <= '9') {
      cursor_.move_to(start);
      return integer();
    }
    return factor() * Dim(-1);
  }

  Dim integer() {
    const size_t start = cursor_.offset();
    if (cursor_.raw() == '-') cursor_.step();
    while (cursor_.raw() >= '0' && cursor_.raw() <= '9') cursor_.step();
    const auto text = cursor_.text().substr(start, cursor_.raw_offset() - start);
    return parse_integer(cursor_, text, start);
  }

  Dim symbol(bool any_integer) {
    const std::string name(cursor_.word());
    if (name.empty()) fail_parse(cursor_, "a dimension");
    return Dim::symbol(name, any_integer);
  }

  Dim extremum(bool smallest) {
    cursor_.word();
    expect(cursor_, "(");
    Dim result = sum();
    while (cursor_.take(",")) result = smallest ? minimum(result, sum()) : maximum(result, sum());
    expect(cursor_, ")");
    return result;
  }

  Cursor& cursor_;
  int depth_ = 0;
};

Shape parse_shape(Cursor& cursor) {
  Shape shape;
  while (!cursor.take("]")) {
    if (!shape.empty()) expect(cursor, ",");
    shape.push_back(parse_dim(cursor));
  }
  return shape;
}

double parse_double(Cursor& cursor) {
  const bool minus = cursor.at("-inf");
  if (minus) cursor.take("-");
  if (cursor.take_word("inf")) return (minus ? -1 : 1) * std::numeric_limits<double>::infinity();
  if (cursor.take_word("nan")) return std::numeric_limits<double>::quiet_NaN();
  const std::string text(cursor.number());
  if (text.empty()) fail_parse(cursor, "a number");
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size()) fail_parse(cursor, "a number");
  return value;
}

AttributeValue parse_number(Cursor& cursor) {
  if (cursor.at("-inf")) return parse_double(cursor);
  const size_t start = cursor.offset();
  const std::string_view text = cursor.number();
  if (text.find_first_of(".eE") == std::string_view::npos)
    return parse_integer(cursor, text, start);
  cursor.move_to(start);
  return parse_double(cursor);
}

AttributeValue parse_flags(Cursor& cursor) {
  std::vector<bool> flags;
  while (!cursor.take("]")) {
    if (!flags.empty()) expect(cursor, ",");
    const bool set = cursor.take("1");
    if (!set) expect(cursor, "0");
    flags.push_back(set);
  }
  return flags;
}

AttributeValue parse_doubles(Cursor& cursor) {
  std::vector<double> list;
  while (!cursor.take("]")) {
    if (!list.empty()) expect(cursor, ",");
    list.push_back(parse_double(cursor));
  }
  return list;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

char parse_escape(Cursor& cursor) {
  const char kind = cursor.raw();
  cursor.step();
  switch (kind) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case '"':
    case '\\':
      return kind;
    case 'x': {
      const int high = hex_digit(cursor.raw());
      cursor.step();
      const int low = hex_digit(cursor.raw());
      if (high < 0 || low < 0) fail_parse(cursor, "two hexadecimal digits");
      cursor.step();
      return static_cast<char>(high * 16 + low);
    }
    default:
      fail_parse(cursor, "an escape sequence");
  }
}

Type parse_type(Cursor& cursor, int depth) {
  if (depth > policy::kDeepestConstant) fail_parse(cursor, "less nesting");
  const size_t start = cursor.offset();
  const std::string_view word = cursor.word();
  if (cursor.raw() == '[') {
    if (const auto dtype = dtype_named(word)) {
      cursor.step();
      Shape shape = parse_shape(cursor);
      const bool negative = std::any_of(shape.begin(), shape.end(), [](const Dim& dim) {
        return dim.is_constant() && dim.value() < 0;
      });
      if (negative) {
        cursor.move_to(start);
        fail_parse(cursor, "sizes that are not negative");
      }
      return Type::tensor(*dtype, std::move(shape));
    }
  }
  if (word == "i64") return Type::i64();
  if (word == "f64") return Type::f64();
  if (word == "bool") return Type::boolean();
  if (word == "str") return Type::str();
  if (word == "none") return Type::none();
  if (word == "frame") return Type::frame();
  if (word == "object") {
    expect(cursor, "<");
    Type type = Type::object(parse_word_or_string(cursor));
    expect(cursor, ">");
    return type;
  }
  if (word == "tuple" || word == "list") {
    Type type;
    type.kind = word == "tuple" ? Type::Kind::tuple : Type::Kind::list;
    expect(cursor, "<");
    while (!cursor.take(">")) {
      if (!type.elements.empty()) expect(cursor, ",");
      type.elements.push_back(parse_type(cursor, depth + 1));
    }
    if (type.kind == Type::Kind::list && type.elements.size() != 1)
      fail_parse(cursor, "one element type of a list");
    return type;
  }
  cursor.move_to(start);
  fail_parse(cursor, "a type");
}

template <class T>
T parse_alone(std::string_view text, T (*parse)(Cursor&)) {
  Cursor cursor(text);
  T result = parse(cursor);
  if (!cursor.at_end()) fail_parse(cursor, "the end");
  return result;
}

}  // namespace

void fail_parse(Cursor& cursor, std::string_view expected) {
  const size_t offset = cursor.offset();
  std::string_view rest = cursor.text().substr(std::min(offset, cursor.text().size()), 20);
  rest = rest.substr(0, rest.find('\n'));
  throw ParseError(cat(cursor.place(offset), ": expected ", expected, ", got ",
                       rest.empty() ? "the end of the text" : cat('\'', rest, '\'')));
}

void expect(Cursor& cursor, std::string_view token) {
  if (!cursor.take(token)) fail_parse(cursor, cat('\'', token, '\''));
}

Dim parse_dim(Cursor& cursor) {
  const size_t start = cursor.offset();
  try {
    return DimParser(cursor).sum();
  } catch (const DimError& error) {
    throw ParseError(cat(cursor.place(start), ": ", error.what()));
  }
}

Type parse_type(Cursor& cursor) { return parse_type(cursor, 0); }

std::string parse_string(Cursor& cursor) {
  expect(cursor, "\"");
  std::string text;
  while (cursor.raw() != '"') {
    if (cursor.raw_end() || cursor.raw() == '\n') fail_parse(cursor, "a closing quote");
    const char c = cursor.raw();
    cursor.step();
    text += c == '\\' ? parse_escape(cursor) : c;
  }
  cursor.step();
  return text;
}

std::string parse_word_or_string(Cursor& cursor) {
  if (cursor.peek() == '"') return parse_string(cursor);
  std::string word(cursor.word(true));
  if (word.empty()) fail_parse(cursor, "a name");
  return word;
}

AttributeValue parse_attribute(Cursor& cursor) {
  const char next = cursor.peek();
  if (next == '"') return parse_string(cursor);
  if (cursor.take("[")) return parse_shape(cursor);
  if (cursor.take("b[")) return parse_flags(cursor);
  if (cursor.take("f[")) return parse_doubles(cursor);
  if (next == '-' || next == '.' || (next >= '0' && next <= '9')) return parse_number(cursor);
  if (cursor.take("dim(")) {
    Dim dim = parse_dim(cursor);
    expect(cursor, ")");
    return dim;
  }
  if (cursor.at_word("inf") || cursor.at_word("nan")) return parse_double(cursor);
  const size_t start = cursor.offset();
  const std::string_view word = cursor.word();
  if (word == "none") return None{};
  if (word == "true") return true;
  if (word == "false") return false;
  if (const auto dtype = dtype_named(word)) return *dtype;
  cursor.move_to(start);
  fail_parse(cursor, "an attribute's value");
}

Dim parse_dim(std::string_view text) { return parse_alone<Dim>(text, parse_dim); }
Type parse_type(std::string_view text) { return parse_alone<Type>(text, parse_type); }

}  // namespace janus::graph
