// Black-box operators: those of torch's that the graph has no operator for. Torch is asked which
// overload a call is and what it gives; the call becomes an `opaque` node.
#pragma once

#include <string>

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Any other builtin of torch, as an `opaque` node; null if it is none.
/// `native_refusal`: why the operator that we know does not take them, if there is one.
Value call_opaque(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments,
                  const std::string& native_refusal = {});

}  // namespace janus::frontend
