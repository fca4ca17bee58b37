// Names of files that are no UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace janus {

/// The text with surrogates, by which Python keeps bytes of a file's name that are no UTF-8, as
/// `\udcff`. Reports have names in this form; python::string() of it is always encodable.
std::string printable(std::string_view utf8);

}  // namespace janus
