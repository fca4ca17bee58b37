// Sizes that only the run knows, or that are computed from others, where an operator takes only
// equal ones.
#pragma once

#include <vector>

#include "frontend/core/interpreter.h"
#include "graph/op.h"

namespace janus::frontend {

/// If the operator does not take operands of these sizes, but would if such a one were the size of
/// another operand: guards that it is, in the graph or at its entry, and gives the operands that
/// size. Calls in which the two differ are Python's, which raises or broadcasts.
void assume_equal_sizes(Interpreter& interpreter, const graph::OpDef& op,
                        std::vector<graph::Value*>& operands, const graph::Attributes& attributes);

}  // namespace janus::frontend
