#include "base/printable.h"

#include <array>
#include <cstdio>

namespace janus {
namespace {

unsigned byte_at(std::string_view text, size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

/// The surrogate whose three bytes begin here; 0: none does.
unsigned surrogate_at(std::string_view text, size_t at) {
  const unsigned second = byte_at(text, at + 1), third = byte_at(text, at + 2);
  if (byte_at(text, at) != 0xED || second < 0xA0 || second > 0xBF || (third & 0xC0) != 0x80)
    return 0;
  return 0xD000 | (second & 0x3F) << 6 | (third & 0x3F);
}

}  // namespace

std::string printable(std::string_view utf8) {
  std::string shown;
  shown.reserve(utf8.size());
  for (size_t at = 0; at < utf8.size(); ++at) {
    const unsigned surrogate = surrogate_at(utf8, at);
    if (surrogate == 0) {
      shown += utf8[at];
      continue;
    }
    std::array<char, 7> escape{};
    std::snprintf(escape.data(), escape.size(), "\\u%04x", surrogate);
    shown += escape.data();
    at += 2;
  }
  return shown;
}

}  // namespace janus
