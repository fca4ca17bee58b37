// Membership: `element in container`, of containers, texts, ranges and objects whose class defines
// it.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// element in container: a constant, or a flag where only the run knows.
Value membership(Interpreter& interpreter, const Value& container, const Value& element);

/// Whether the element is in the container: known, or followed with a guard.
bool contains(Interpreter& interpreter, const Value& container, const Value& element);

}  // namespace janus::frontend
