// Questions that the entry of a graph asks anew: how often classes were registered, which function
// a dispatcher finds for a class. Each entry assumes that the answer is still the same.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The path of what `callable()` gives, or `callable(argument)`. Each entry calls it, so it must be
/// cheap, only compute, and run no code of the program. Both have a `__name__`, or the argument is
/// a text.
const Source* answer_path(Interpreter& interpreter, PyObject* callable,
                          PyObject* argument = nullptr);

}  // namespace janus::frontend
