// Assignment to the targets that Python's grammar has.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Assigns to a name, attribute or subscript, or unpacks the value into a list of targets.
void assign(Interpreter& interpreter, const syntax::Expression& target, const Value& value);

}  // namespace janus::frontend
