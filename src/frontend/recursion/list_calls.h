// torch.stack and torch.cat of lists of which only the run knows how many elements they have.
#pragma once

#include "frontend/values/value.h"

namespace janus::frontend {

class Interpreter;

/// Implements call_on_list() of core/operations.h.
Value call_list_operator(Interpreter& interpreter, PyObject* callable,
                         const CallArguments& arguments);

}  // namespace janus::frontend
