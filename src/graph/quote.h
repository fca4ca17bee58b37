// Strings and floating point numbers in the textual form.
#pragma once

#include <string>
#include <string_view>

namespace janus::graph {

/// "text" with quotes, backslashes and control characters escaped (\", \\, \n, \t, \xHH).
std::string quoted(std::string_view text);
/// The text itself if it is a word of letters, digits, underscores and points, else quoted.
std::string word_or_quoted(std::string_view text);
/// The shortest decimal that reads back as the same double, always with a point, an exponent, `inf`
/// or `nan`.
std::string number_text(double value);

}  // namespace janus::graph
