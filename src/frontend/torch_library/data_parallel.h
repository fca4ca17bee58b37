// Training steps with DistributedDataParallel as one graph.
//
// The call of the wrapper is that of the module within, behind the broadcast of its buffers. A
// backward() that reaches its parameters then makes the collectives that the wrapper's reducer
// would make at that point (gradient_exchange.h): the same buckets in the same order, so that other
// processes may run the same step eagerly. docs/distributed.md says what those are.
#pragma once

#include "frontend/core/interpreter.h"

namespace janus::frontend {

/// DistributedDataParallel.forward
Value call_data_parallel(Interpreter& interpreter, const CallArguments& arguments);

}  // namespace janus::frontend
