// Guards on numbers that only the run knows.
#pragma once

#include "frontend/core/interpreter.h"
#include "graph/op.h"

namespace janus::frontend {

/// That the number compares so with the bound is guarded (`op::scalar_ge`, …).
void assume_compares(Interpreter& interpreter, const graph::OpDef& comparison, graph::Value* number,
                     int64_t bound);

}  // namespace janus::frontend
