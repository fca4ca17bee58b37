// functools.singledispatch: which function is called for the class of the first argument.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The `dispatch` of a singledispatch function, given a class: what it finds, which each entry
/// assumes to stay. Null: it is another function, or the class is not known.
Value call_dispatch(Interpreter& interpreter, const Known& function,
                    const CallArguments& arguments);

}  // namespace janus::frontend
