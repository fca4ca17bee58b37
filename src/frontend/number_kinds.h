// Python's numbers by their classes: bools, ints and floats.
#pragma once

#include <optional>

#include "frontend/interpreter.h"

namespace janus::frontend {

/// Which of a bool, an int and a float it is; nothing: it is no number of one kind.
std::optional<graph::Type::Kind> kind_of_number(const Value& value);
/// The higher one and the lower one of the kinds of numbers that there are on the two sides;
/// nothing if there are not two.
struct NumberKinds {
  graph::Type::Kind high, low;
  friend bool operator==(const NumberKinds&, const NumberKinds&) = default;
};
std::optional<NumberKinds> kinds_of_numbers(const Value& a, const Value& b);
/// A number of one of two kinds as values of the graph: which of them it is, and what it is as
/// each; nobody looks at the other one. Made in the block at hand.
struct NumberParts {
  graph::Value *is_high, *high, *low;
};
/// Nothing: it is none of these kinds.
std::optional<NumberParts> parts_by_kind(Interpreter& interpreter, const Value& value,
                                         const NumberKinds& kinds);

/// Whether two immutable objects can't be told apart but by their identity.
bool same_constant(PyObject* a, PyObject* b);

}  // namespace janus::frontend
