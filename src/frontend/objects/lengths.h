// Lengths of containers, and whether they hold anything.
#pragma once

#include <optional>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// len(value) as a number.
Value length_of(Interpreter& interpreter, const Value& value);

/// Whether a list or dict that existed before the call holds anything, which is all that is assumed
/// of it; nothing for other values.
std::optional<bool> container_truth(Interpreter& interpreter, const Value& value);

}  // namespace janus::frontend
