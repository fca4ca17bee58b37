// Loops in the graph: a loop whose number of iterations only the run knows becomes a `while` node.
// The loop-carried values are found by interpreting the body until the state reaches a fixpoint.
// They are parameters of the blocks.
#pragma once

#include <functional>

#include "frontend/control/loop_parts.h"
#include "frontend/core/interpreter.h"
#include "frontend/values/element_list.h"
#include "frontend/values/truth.h"
#include "frontend/values/value.h"

namespace janus::frontend {

/// Runs the loop as a `while` node. `fact` is that of the loop. Throws CannotMerge if what its
/// iterations change can't be carried.
void loop_in_graph(Interpreter& interpreter, int fact, const LoopParts& parts);
void loop_in_graph(Interpreter& interpreter, const TestKey& test, const LoopParts& parts);

/// Whether the profile saw different numbers of iterations (or none), and the loop may be in the
/// graph.
bool iterations_vary(Interpreter& interpreter, int fact);

/// What the test is, without leaving a trace of having evaluated it.
Truth peek(Interpreter& interpreter, int fact, const std::function<Truth()>& test);

}  // namespace janus::frontend
