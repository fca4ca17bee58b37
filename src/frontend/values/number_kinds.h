// Python's numbers by their classes: bools, ints and floats.
#pragma once

#include <cstdint>
#include <optional>

#include "frontend/values/value.h"

namespace janus::frontend {

/// Whether the value is a Python int, float or bool, known or not.
bool is_number(const Value& value);
/// Whether it is a bool that the graph has.
bool is_flag(const Value& value);
/// The number that a known int is; nothing: it is something else, or too great.
std::optional<int64_t> known_integer(const Value& value);

/// Which of a bool, an int and a float it is; nothing: it is no number of one kind.
std::optional<graph::Type::Kind> kind_of_number(const Value& value);
/// The higher one and the lower one of the kinds of numbers that there are on the two sides;
/// nothing if there are not two.
struct NumberKinds {
  graph::Type::Kind high, low;
  friend bool operator==(const NumberKinds&, const NumberKinds&) = default;
};
std::optional<NumberKinds> kinds_of_numbers(const Value& a, const Value& b);

}  // namespace janus::frontend
