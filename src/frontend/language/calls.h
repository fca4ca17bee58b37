// Calls by the kind of callee: special callables by identity, operators of torch, functions of
// Python, which are inlined, builtins that only compute, methods and other objects that have a
// `__call__`.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Implements call() of core/operations.h.
Value call_value(Interpreter& interpreter, const Value& callee, const CallArguments& arguments);

}  // namespace janus::frontend
