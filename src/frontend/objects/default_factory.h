// What makes the values that a defaultdict lacks.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The `default_factory` of a defaultdict; null for other dicts.
Value factory_of(Interpreter& interpreter, const Value& dictionary);

}  // namespace janus::frontend
