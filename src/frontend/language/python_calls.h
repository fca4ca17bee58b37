// Functions of Python's library that the run itself calls with numbers.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// A function that only computes a number of that type of numbers; null if an argument is none.
Value call_python(Interpreter& interpreter, std::string_view function,
                  const CallArguments& arguments, graph::Type::Kind kind);

}  // namespace janus::frontend
