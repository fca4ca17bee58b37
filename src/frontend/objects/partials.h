// functools.partial. One that the run makes is an Instance with the attributes that Python shows of
// it: `func`, `args` and `keywords`.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

struct PartialParts {
  Value function;
  CallArguments arguments;
};
/// What the partial calls, and with what.
PartialParts parts_of_partial(Interpreter& interpreter, const Value& partial);

/// functools.partial(function, *arguments)
Value make_partial(Value function, const CallArguments& arguments);

/// partial(*arguments), of one of the entry or of the run.
Value call_partial(Interpreter& interpreter, const Value& partial, const CallArguments& arguments);

}  // namespace janus::frontend
