// The pieces of the textual form that stand inside a node: dimensions, types, attribute values.
// Part of the parser (graph/text_parser.cpp).
#pragma once

#include <string_view>

#include "base/cursor.h"
#include "graph/attribute.h"
#include "graph/type.h"

namespace janus::graph {

/// Throws ParseError("line:column: expected <expected>, got ...") for the next token.
[[noreturn]] void fail_parse(Cursor& cursor, std::string_view expected);
void expect(Cursor& cursor, std::string_view token);

Dim parse_dim(Cursor& cursor);
Type parse_type(Cursor& cursor);
AttributeValue parse_attribute(Cursor& cursor);
std::string parse_string(Cursor& cursor);
/// A word with points, or a string.
std::string parse_word_or_string(Cursor& cursor);

}  // namespace janus::graph
