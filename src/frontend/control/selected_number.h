// A number that is one of two.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// One of two numbers of a kind, where only the run decides which; else null.
Value selected(Interpreter& interpreter, const Value& test, const Value& yes, const Value& no);

}  // namespace janus::frontend
