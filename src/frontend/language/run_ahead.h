// A generator that is run to its end where it is called, as its consumer takes its elements in a
// way that cannot be followed step by step.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// The iterator over what the generator yields; its frame has its arguments. The program may not be
/// able to tell that from running it step by step: it neither computes tensors nor changes
/// anything, and it would yield the same wherever an element is taken. Anything else is refused.
Value run_ahead(Interpreter& interpreter, const Frame& generator, const syntax::Body& body);

}  // namespace janus::frontend
