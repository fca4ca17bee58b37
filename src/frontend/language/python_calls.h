// Calls of functions of Python's library that are nodes of the graph: functions of numbers that
// only the run knows, draws of random numbers, and clock reads.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Calls a function that computes one number of that type from numbers; null if an argument is not
/// a number.
Value call_python(Interpreter& interpreter, std::string_view function,
                  const CallArguments& arguments, graph::Type::Kind kind);

}  // namespace janus::frontend
