// Arguments that a binding of torch refuses although the operator behind it would take them:
// numbers in the place of tensors, an int for a tuple of ints, keywords of another name.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// Refuses the call (would_raise) if it is of a binding that raises TypeError for such arguments.
/// Other callables pass, and so do earlier forms of operators, of which bindings warn.
void refuse_what_binding_refuses(Interpreter& interpreter, PyObject* callable,
                                 const CallArguments& arguments);

/// The same for what passed, and has a number where all overloads want a tensor.
void refuse_numbers_for_tensors(Interpreter& interpreter, PyObject* callable,
                                const CallArguments& arguments);

}  // namespace janus::frontend
