// Numbers in the place of tensors, which a binding of torch refuses although the operator behind it
// would take them.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Refuses the call (would_raise) if it is of a binding that raises TypeError, for a number where
/// all overloads want a tensor. Other callables pass.
void refuse_numbers_for_tensors(Interpreter& interpreter, PyObject* callable,
                                const CallArguments& arguments);

}  // namespace janus::frontend
