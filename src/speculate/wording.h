// Assumptions in words, for reports and for messages about guards that did not hold.
#pragma once

#include <compare>
#include <string>

#include "speculate/generated.h"

namespace janus::speculate {

/// An assumption in words: what stands before the object's path, and what behind it.
struct Wording {
  std::string before, after;
  std::string around(const std::string& path) const { return before + path + after; }
  auto operator<=>(const Wording&) const = default;
};

Wording wording_of(const Assumption& assumption);

/// That of Assumption::Kind::separate_memory.
std::string separate_memory_text(const std::string& path, bool is_written);

}  // namespace janus::speculate
