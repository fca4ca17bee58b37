// Numbers of one of two classes as values of the graph: a flag that says which, and the number as
// each.
#pragma once

#include <optional>

#include "frontend/core/interpreter.h"
#include "frontend/values/number_kinds.h"

namespace janus::frontend {

/// A number of one of two kinds as values of the graph: which of them it is, and what it is as
/// each; nobody looks at the other one. Made in the block at hand.
struct NumberParts {
  graph::Value *is_high, *high, *low;
};

/// Nothing: it is none of these kinds.
std::optional<NumberParts> parts_by_kind(Interpreter& interpreter, const Value& value,
                                         const NumberKinds& kinds);

}  // namespace janus::frontend
