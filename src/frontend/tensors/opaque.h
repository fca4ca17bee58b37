// Black-box operators: those of torch's that the graph has no operator for. Torch is asked which
// overload a call is and what it gives; the call becomes an `opaque` node.
#pragma once

#include <string>

#include "frontend/core/interpreter.h"
#include "frontend/core/torch_services.h"
#include "frontend/tensors/described_call.h"

namespace janus::frontend {

/// Any other builtin of torch, as an `opaque` node; null if it is none.
/// `native_refusal`: why the operator that we know does not take them, if there is one.
Value call_opaque(Interpreter& interpreter, PyObject* callable, const CallArguments& arguments,
                  const std::string& native_refusal = {});

/// The call of an overload that is resolved already, as an `opaque` node. `in_order`: the elements
/// of its results lie in the order of their indices.
Value call_resolved(Interpreter& interpreter, PyObject* callable, DescribedArguments& described,
                    ResolvedOperator& resolved, bool in_order);

}  // namespace janus::frontend
