// Calls of operators of the graph: the overloads are tried in order, and the results of the one
// that fits become tensors with the strides, views and autograd state that eager would give them.
#pragma once

#include <string>

#include "frontend/core/interpreter.h"
#include "frontend/core/known_callables.h"
#include "graph/op.h"

namespace janus::frontend {

/// Why no overload took a call.
struct NoOverload {
  std::string message;           ///< of the type check; empty: the arguments fit none
  bool strides_unknown = false;  ///< a view that the strides decide, which only the run knows
};

/// Fits the call to one of the overloads, with the arguments as they are: autocast is not asked.
/// Null: none took it.
Value call_overloads(Interpreter& interpreter, const OperatorForm& form, PyObject* callable,
                     const CallArguments& arguments, NoOverload& why);

}  // namespace janus::frontend
