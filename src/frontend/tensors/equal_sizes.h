// Sizes that only the run knows, where an operator takes only equal ones.
#pragma once

#include <vector>

#include "frontend/core/interpreter.h"
#include "graph/op.h"

namespace janus::frontend {

/// If the operator does not take operands of these sizes, but would if one that only the run knows
/// were the size of another operand: guards in the graph that it is, and gives the operands that
/// size. Runs in which the two differ are Python's, which raises or broadcasts.
void assume_equal_sizes(Interpreter& interpreter, const graph::OpDef& op,
                        std::vector<graph::Value*>& operands, const graph::Attributes& attributes);

}  // namespace janus::frontend
